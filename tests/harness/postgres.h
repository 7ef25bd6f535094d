#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/child_process.h"
#include "store/options.h"

struct pg_conn;

namespace leaf::harness {

/// A plain session with a server, for what tests do by hand. A statement that fails is a failure of
/// the test. Confined to one thread.
class PgSession {
 public:
  using Row = std::vector<std::optional<std::string>>;
  using Rows = std::vector<Row>;

  explicit PgSession(const std::string& conninfo);
  ~PgSession();
  PgSession(const PgSession&) = delete;
  PgSession& operator=(const PgSession&) = delete;

  /// Runs one statement, or several separated by ';'. The rows of the last.
  Rows Exec(const std::string& sql);
  /// The same; the server's SQLSTATE instead of a failed test, "" if there was no error.
  std::string Try(const std::string& sql);
  /// The only cell of the only row.
  std::string Value(const std::string& sql);
  bool connected() const noexcept;

 private:
  std::string Run(const std::string& sql, Rows& rows);
  pg_conn* connection_ = nullptr;
  std::string error_;
};

/// A PostgreSQL server of the test's own: a fresh data folder, a free port of 127.0.0.1 and a unix
/// socket, gone with this object, and killed with the test program however that ends. Database
/// `leaf` exists and belongs to the user `leaf`, password `secret`; the superuser postgres has no
/// password on the socket. A server of the system's is not touched. Tests that run as root start it
/// as the user postgres, for it refuses to be root.
class Postgres {
 public:
  /// `settings` are lines of postgresql.conf, beside the usual ones. Aborts the program if there is
  /// no server to be had.
  explicit Postgres(std::vector<std::string> settings = {});
  ~Postgres();
  Postgres(const Postgres&) = delete;
  Postgres& operator=(const Postgres&) = delete;

  int port() const noexcept { return port_; }
  /// A folder for the test's files, gone with the server.
  const std::string& folder() const noexcept { return folder_.path(); }
  /// The address, database and user of above, over TCP.
  StoreOptions options() const;

  /// As postgres, in database leaf. Keeps one session for that, renewed after a restart.
  PgSession& root();
  PgSession::Rows Exec(const std::string& sql) { return root().Exec(sql); }
  std::unique_ptr<PgSession> Connect() const;

  /// Makes Leaf's table anew and empty, owned by leaf.
  void MakeTable();
  /// ALTER SYSTEM and a reload; "" resets.
  void Set(const std::string& name, const std::string& value);

  void Stop();                          ///< fast shutdown, and waits
  void Kill9();                         ///< every process of it, and waits
  void Freeze() { process_.Freeze(); }  ///< the postmaster alone: new sessions hang
  void Thaw() { process_.Thaw(); }
  /// On the same port and data.
  void Start();
  bool running() const noexcept { return process_.running(); }

 private:
  void Install();
  std::string Log() const { return folder_.path() + "/server.log"; }

  TestFolder folder_;
  int port_ = 0;
  ChildProcess process_;
  std::unique_ptr<PgSession> root_;
};

}  // namespace leaf::harness
