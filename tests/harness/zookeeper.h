#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/child_process.h"

struct _zhandle;

namespace leaf::harness {

/// A plain client of a server, for what tests do and look at by hand. A call that fails is a
/// failure of the test. Confined to one thread.
class ZkClient {
 public:
  explicit ZkClient(int port, const std::string& auth = "");
  ~ZkClient();
  ZkClient(const ZkClient&) = delete;
  ZkClient& operator=(const ZkClient&) = delete;

  /// With everything above it that is missing.
  void Create(const std::string& path, std::string_view data);
  /// The path with its number.
  std::string CreateSequential(const std::string& path, std::string_view data);
  /// Gone with this client's session.
  void CreateEphemeral(const std::string& path);
  void Set(const std::string& path, std::string_view data);
  /// With all below it.
  void Delete(const std::string& path);
  std::string Get(const std::string& path);
  std::int32_t Version(const std::string& path);
  bool Exists(const std::string& path);
  std::vector<std::string> Children(const std::string& path);  ///< sorted
  /// "scheme:id:perms" of each entry, joined by blanks.
  std::string Acl(const std::string& path);
  /// Only the user that this client came as may do anything.
  void MakePrivate(const std::string& path);

 private:
  _zhandle* handle_ = nullptr;
};

/// A ZooKeeper server of the test's own: a fresh data folder and a free port of 127.0.0.1, gone
/// with this object, and killed with the test program however that ends.
class ZooKeeper {
 public:
  /// No session outlives `max_session` without a word. Aborts the program if there is no server to
  /// be had.
  explicit ZooKeeper(std::chrono::milliseconds max_session = std::chrono::minutes(1));
  ZooKeeper(const ZooKeeper&) = delete;
  ZooKeeper& operator=(const ZooKeeper&) = delete;

  int port() const noexcept { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::unique_ptr<ZkClient> Connect(const std::string& auth = "") const {
    return std::make_unique<ZkClient>(port_, auth);
  }

  void Stop();  ///< SIGTERM, and waits
  void Kill9() { process_.Kill9(); }
  void Freeze() { process_.Freeze(); }
  void Thaw() { process_.Thaw(); }
  /// On the same data, at the port of before or another one (0: any that is free).
  void Start();
  void StartAt(int port);
  /// All sessions expire while their clients cannot reach the server; then it serves again where it
  /// did. Takes a little longer than `max_session`.
  void ForgetSessions();
  bool running() const noexcept { return process_.running(); }

 private:
  void Spawn();

  const std::chrono::milliseconds max_session_;
  TestFolder folder_;
  int port_ = 0;
  ChildProcess process_;
};

}  // namespace leaf::harness
