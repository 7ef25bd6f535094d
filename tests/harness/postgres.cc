#include "harness/postgres.h"

#include <gtest/gtest.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <utility>

namespace leaf::harness {
namespace {

const std::string kBin = "/usr/lib/postgresql/15/bin/";
const std::string kUser = "postgres";

// A child of a postmaster that was killed notices it by itself; only then may another begin.
bool ChildrenAreGone(const std::string& data) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code gone;
    const auto cwd = std::filesystem::read_symlink(entry.path() / "cwd", gone);
    if (!gone && cwd == data) return false;
  }
  return true;
}

void KillChildren(const std::string& data) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::error_code gone;
    const auto cwd = std::filesystem::read_symlink(entry.path() / "cwd", gone);
    if (!gone && cwd == data) kill(std::stoi(name), SIGKILL);
  }
}

}  // namespace

PgSession::PgSession(const std::string& conninfo) {
  connection_ = PQconnectdb(conninfo.c_str());
  PQsetNoticeProcessor(
      connection_, [](void*, const char*) {}, nullptr);
  if (PQstatus(connection_) == CONNECTION_OK) return;
  error_ = PQerrorMessage(connection_);
  PQfinish(std::exchange(connection_, nullptr));
}

PgSession::~PgSession() {
  if (connection_ != nullptr) PQfinish(connection_);
}

bool PgSession::connected() const noexcept {
  return connection_ != nullptr && PQstatus(connection_) == CONNECTION_OK;
}

std::string PgSession::Run(const std::string& sql, Rows& rows) {
  if (connection_ == nullptr) return "08001";
  PGresult* result = PQexec(connection_, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  std::string failed;
  if (status == PGRES_TUPLES_OK) {
    for (int i = 0; i < PQntuples(result); ++i) {
      Row& row = rows.emplace_back();
      for (int k = 0; k < PQnfields(result); ++k) {
        row.push_back(PQgetisnull(result, i, k) != 0
                          ? std::nullopt
                          : std::optional<std::string>(PQgetvalue(result, i, k)));
      }
    }
  } else if (status != PGRES_COMMAND_OK) {
    const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    failed = state == nullptr ? "08000" : state;
    error_ = PQerrorMessage(connection_);
  }
  PQclear(result);
  return failed;
}

PgSession::Rows PgSession::Exec(const std::string& sql) {
  Rows rows;
  const std::string failed = Run(sql, rows);
  EXPECT_EQ(failed, "") << sql << "\n" << error_;
  return rows;
}

std::string PgSession::Try(const std::string& sql) {
  Rows rows;
  return Run(sql, rows);
}

std::string PgSession::Value(const std::string& sql) {
  const Rows rows = Exec(sql);
  if (rows.size() != 1 || rows[0].size() != 1) {
    ADD_FAILURE() << sql << " has " << rows.size() << " rows";
    return "";
  }
  return rows[0][0].value_or("NULL");
}

Postgres::Postgres(std::vector<std::string> settings) : folder_("postgres") {
  if (geteuid() == 0) {
    const passwd* user = getpwnam(kUser.c_str());
    if (user == nullptr || chown(folder().c_str(), user->pw_uid, user->pw_gid) != 0)
      GiveUp("no user postgres (package postgresql-15)");
  }
  Install();
  std::ofstream conf(folder() + "/data/postgresql.auto.conf", std::ios::app);
  conf << "unix_socket_directories = '" << folder() << "'\nlisten_addresses = '127.0.0.1'\n"
       << "shared_buffers = 16MB\nmax_connections = 200\nautovacuum = off\nlog_checkpoints = off\n"
       << "jit = off\n";
  for (const std::string& line : settings) conf << line << "\n";
  conf.close();
  Start();
  const auto first = std::make_unique<PgSession>(
      "host=" + folder() + " port=" + std::to_string(port_) + " user=postgres dbname=postgres");
  first->Exec("CREATE ROLE leaf LOGIN PASSWORD 'secret'");
  first->Exec("CREATE DATABASE leaf OWNER leaf");
}

Postgres::~Postgres() {
  if (running()) Kill9();
}

void Postgres::Install() {
  RunOrGiveUp({kBin + "initdb", "-D", folder() + "/data", "-U", "postgres", "--auth-local=trust",
               "--auth-host=scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
               "--no-instructions"},
              folder() + "/install.log", kUser);
}

void Postgres::Start() {
  StartServer(
      process_, port_, Log(),
      [this] {
        process_.Launch({kBin + "postgres", "-D", folder() + "/data", "-p", std::to_string(port_)},
                        Log(), kUser);
      },
      [this] {
        return PgSession("host=" + folder() + " port=" + std::to_string(port_) +
                         " user=postgres dbname=postgres")
            .connected();
      });
}

std::unique_ptr<PgSession> Postgres::Connect() const {
  return std::make_unique<PgSession>("host=" + folder() + " port=" + std::to_string(port_) +
                                     " user=postgres dbname=leaf");
}

PgSession& Postgres::root() {
  if (root_ == nullptr || !root_->connected()) root_ = Connect();
  return *root_;
}

StoreOptions Postgres::options() const {
  StoreOptions options;
  options.kind = "postgres";
  options.servers = "127.0.0.1:" + std::to_string(port_);
  options.database = "leaf";
  options.user = "leaf";
  options.password = "secret";
  options.parameters["sslmode"] = "disable";
  return options;
}

void Postgres::MakeTable() {
  Exec(
      "DROP TABLE IF EXISTS leaf_alloc; CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL "
      "DEFAULT '' PRIMARY KEY, max_id bigint NOT NULL DEFAULT 1, step int, description "
      "varchar(256), update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP); ALTER TABLE "
      "leaf_alloc OWNER TO leaf");
}

void Postgres::Set(const std::string& name, const std::string& value) {
  if (value.empty()) {
    Exec("ALTER SYSTEM RESET " + name);
  } else {
    Exec("ALTER SYSTEM SET " + name + " = '" + value + "'");
  }
  Exec("SELECT pg_reload_conf()");
}

void Postgres::Stop() {
  root_.reset();
  process_.Stop(SIGINT);
}

void Postgres::Kill9() {
  root_.reset();
  process_.Kill9();
  const std::string data = folder() + "/data";
  while (!ChildrenAreGone(data)) KillChildren(data);
}

}  // namespace leaf::harness
