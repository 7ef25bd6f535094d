#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/child_process.h"
#include "store/options.h"

struct st_mysql;

namespace leaf::harness {

/// A plain session with a server, for what tests do by hand. A statement that fails is a failure of
/// the test. Confined to one thread.
class SqlSession {
 public:
  using Row = std::vector<std::optional<std::string>>;
  using Rows = std::vector<Row>;

  SqlSession(const std::string& socket, const std::string& user, const std::string& password);
  ~SqlSession();
  SqlSession(const SqlSession&) = delete;
  SqlSession& operator=(const SqlSession&) = delete;

  /// Runs one statement or several, separated by ';'. The rows of the last.
  Rows Exec(const std::string& sql);
  /// The same; the server's error number instead of a failed test, 0 if there was none.
  unsigned Try(const std::string& sql);
  /// The only cell of the only row.
  std::string Value(const std::string& sql);
  bool connected() const noexcept { return mysql_ != nullptr; }

 private:
  unsigned Run(const std::string& sql, Rows& rows);
  st_mysql* mysql_ = nullptr;
  std::string error_;
};

/// A MariaDB server of the test's own: a fresh data folder, a free port of 127.0.0.1 and a unix
/// socket, gone with this object, and killed with the test program however that ends. Database
/// `leaf` exists, and the user `leaf`, password `secret`, may read and write in it (SELECT, INSERT,
/// UPDATE, DELETE, CREATE, ALTER, DROP, INDEX); root has no password on the socket. A server of the
/// system's is not touched.
class MariaDb {
 public:
  /// `arguments` are mariadbd's, beside the usual ones. Aborts the program if there is no server to
  /// be had.
  explicit MariaDb(std::vector<std::string> arguments = {});
  ~MariaDb();
  MariaDb(const MariaDb&) = delete;
  MariaDb& operator=(const MariaDb&) = delete;

  int port() const noexcept { return port_; }
  const std::string& socket() const noexcept { return socket_; }
  /// A folder for the test's files, gone with the server.
  const std::string& folder() const noexcept { return folder_.path(); }
  /// The address, database and user of above, over TCP.
  StoreOptions options() const;

  /// As root. Keeps one session for that, renewed after a restart.
  SqlSession& root();
  SqlSession::Rows Exec(const std::string& sql) { return root().Exec(sql); }
  std::unique_ptr<SqlSession> Connect() const {
    return std::make_unique<SqlSession>(socket_, "root", "");
  }

  /// Makes Leaf's table anew and empty, by the words that `options` append ("ENGINE=InnoDB").
  void MakeTable(const std::string& options = "ENGINE=InnoDB DEFAULT CHARSET=latin1");

  void Stop();   ///< SIGTERM, and waits
  void Kill9();  ///< and waits
  void Freeze() { process_.Freeze(); }
  void Thaw() { process_.Thaw(); }
  /// On the same port and data, with the arguments of before or these.
  void Start();
  void Restart(std::vector<std::string> arguments);
  bool running() const noexcept { return process_.running(); }

 private:
  void Install();
  void Spawn();
  std::string Log() const { return folder_.path() + "/server.log"; }

  std::vector<std::string> arguments_;
  TestFolder folder_;
  std::string socket_;
  int port_ = 0;
  ChildProcess process_;
  std::unique_ptr<SqlSession> root_;
};

}  // namespace leaf::harness
