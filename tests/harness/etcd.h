#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/child_process.h"
#include "store/options.h"

namespace leaf::rpc {
class GrpcChannel;
}

namespace leaf::harness {

/// A cluster of etcd of the test's own, of one member or several: fresh data folders and free ports
/// of 127.0.0.1, gone with this object, and killed with the test program however that ends. What
/// fails here fails the test. Confined to one thread.
class Etcd {
 public:
  struct Options {
    int members = 1;
    /// Certificate for the clients' side, PEM files; empty: no TLS.
    std::string cert = {}, key = {};
    std::string client_ca = {};               ///< clients must show a certificate of this authority
    std::vector<std::string> arguments = {};  ///< etcd's own, beside the usual ones
  };

  /// Returns when it serves. Aborts the program if there is none to be had.
  explicit Etcd(Options options);
  Etcd() : Etcd(Options()) {}
  ~Etcd();
  Etcd(const Etcd&) = delete;
  Etcd& operator=(const Etcd&) = delete;

  int size() const noexcept { return static_cast<int>(members_.size()); }
  int port(int member = 0) const { return at(member).port; }
  std::string address(int member = 0) const { return "127.0.0.1:" + std::to_string(port(member)); }
  std::string servers() const;  ///< all of them, by commas
  /// A store with all members as servers, the first first.
  StoreOptions options() const;
  const std::string& folder() const noexcept { return folder_.path(); }

  void Kill9(int member = 0) { at(member).process.Kill9(); }
  void Freeze(int member = 0) { at(member).process.Freeze(); }
  void Thaw(int member = 0) { at(member).process.Thaw(); }
  /// On its data and ports; does not wait until it serves.
  void Launch(int member = 0);
  /// All that do not run, and waits until the cluster serves.
  void Start();
  /// The member that leads, once there is one that says so and is not `except`.
  int Leader(int except = -1);
  /// Waits until `member` knows a leader.
  void AwaitServing(int member);

  /// By hand, past the driver; without authentication.
  void Put(const std::string& key, std::string_view value);
  std::optional<std::string> Get(const std::string& key);
  void DeleteAll(const std::string& prefix);
  std::int64_t Revision();
  void Compact(std::int64_t revision);
  void SetAlarmNoSpace(bool on);

  /// A backup of the first member in `file`, and a cluster of one made of it on the same ports,
  /// with the same name and token; waits until it serves.
  void Save(const std::string& file) { Ctl({"snapshot", "save", file}); }
  void Restore(const std::string& file);

  /// Runs etcdctl on the first member; what it prints.
  std::string Ctl(const std::vector<std::string>& words);
  std::string log(int member = 0) const { return FileContents(at(member).log); }

 private:
  struct Member {
    std::string name, data, log;
    int port = 0, peer_port = 0;
    ChildProcess process;
  };

  std::string Cluster() const;  ///< as --initial-cluster wants it
  const Member& at(int member) const { return *members_[static_cast<std::size_t>(member)]; }
  Member& at(int member) { return *members_[static_cast<std::size_t>(member)]; }
  bool TryFirstStart();
  bool AwaitAll();
  template <typename Request, typename Response>
  bool Call(int member, const char* path, const Request& request, Response& response);
  template <typename Request, typename Response>
  void MustCall(const char* path, const Request& request, Response& response);

  const Options options_;
  TestFolder folder_;
  std::vector<std::unique_ptr<Member>> members_;
  int life_ = 0;  ///< counts first starts
};

}  // namespace leaf::harness
