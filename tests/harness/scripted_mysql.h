#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"

struct evp_pkey_st;

namespace leaf::harness {

/// A server of a test's own that speaks as much of MySQL 8's protocol as the store needs: the
/// greeting, caching_sha2_password, the queries of the probe, and reservations of a single row in
/// memory. It does what the script says, at a named point also nothing at all.
class ScriptedMysql {
 public:
  enum class Login {
    kFast,       ///< the password's hash is in the server's cache
    kFull,       ///< it is not: the password itself is wanted, encrypted with the server's RSA key
    kRefuse,     ///< an error packet
    kOddPlugin,  ///< a plugin that nobody has
    kClearText,  ///< the password as it is
  };
  enum class Point { kNone, kGreeting, kLogin, kProbe, kPrepare, kExecute };

  struct Script {
    std::string version = "8.0.36";
    Login login = Login::kFast;
    bool names_its_plugin = true;  ///< in the greeting; else it asks the client to switch to it
    bool offers_tls = false;       ///< in words only
    std::string password = "secret";
    Duration drip{0};                ///< pause between the bytes of the greeting
    Point silent_at = Point::kNone;  ///< from there on nothing more is said
    Point closes_at = Point::kNone;  ///< there the connection ends
    unsigned execute_error = 0;      ///< answered to each reservation
    std::string engine = "InnoDB", max_id_type = "bigint", read_only = "OFF", flush = "1",
                sync_binlog = "1";
    std::int64_t max_id = 1, step = 1000;
  };

  explicit ScriptedMysql(Script script);
  ~ScriptedMysql();
  ScriptedMysql(const ScriptedMysql&) = delete;
  ScriptedMysql& operator=(const ScriptedMysql&) = delete;

  int port() const noexcept { return port_; }
  int connections() const noexcept { return connections_; }
  int executed() const noexcept { return executed_; }
  std::int64_t max_id() const noexcept { return max_id_; }
  /// Every text of a query or prepared statement so far.
  std::vector<std::string> texts() const;
  /// All bytes that clients have sent before they were logged in.
  std::string login_bytes() const;
  /// May be changed between calls of the client.
  std::atomic<Point> silent_at{Point::kNone};
  std::atomic<unsigned> execute_error{0};
  std::atomic<int> execute_errors{-1};  ///< how often that is answered; below 0: always

 private:
  class Session;
  void Accept();

  const Script script_;
  std::shared_ptr<evp_pkey_st> key_;
  std::string public_key_;
  int listener_ = -1, stop_fd_ = -1, port_ = 0;
  std::atomic<int> connections_{0}, executed_{0};
  std::atomic<std::int64_t> max_id_{1};
  mutable Mutex mu_;
  std::vector<std::string> texts_ GUARDED_BY(mu_);
  std::string login_bytes_ GUARDED_BY(mu_);
  std::thread acceptor_;
  std::vector<std::thread> sessions_;  ///< confined to acceptor_, then to the destructor
};

}  // namespace leaf::harness
