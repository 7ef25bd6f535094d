#include "harness/mariadb.h"

#include <gtest/gtest.h>
#include <mysql.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

namespace leaf::harness {
namespace {

// A server clears its temporary folder of what others left there, so that is no folder to share.
std::vector<std::string> Common(const std::string& folder) {
  std::vector<std::string> words = {"--no-defaults",
                                    "--datadir=" + folder + "/data",
                                    "--tmpdir=" + folder + "/tmp",
                                    "--innodb-buffer-pool-size=16M",
                                    "--innodb-log-file-size=8M",
                                    "--skip-name-resolve"};
  if (geteuid() == 0) words.emplace_back("--user=root");
  return words;
}

std::string Daemon() {
  return access("/usr/sbin/mariadbd", X_OK) == 0 ? "/usr/sbin/mariadbd" : "mariadbd";
}

}  // namespace

SqlSession::SqlSession(const std::string& socket, const std::string& user,
                       const std::string& password) {
  mysql_ = mysql_init(nullptr);
  mysql_options(mysql_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  if (mysql_real_connect(mysql_, nullptr, user.c_str(), password.c_str(), nullptr, 0,
                         socket.c_str(), CLIENT_MULTI_STATEMENTS) != nullptr) {
    return;
  }
  error_ = mysql_error(mysql_);
  mysql_close(std::exchange(mysql_, nullptr));
}

SqlSession::~SqlSession() {
  if (mysql_ != nullptr) mysql_close(mysql_);
}

unsigned SqlSession::Run(const std::string& sql, Rows& rows) {
  if (mysql_ == nullptr) return 2002;
  int more = mysql_real_query(mysql_, sql.data(), sql.size()) == 0 ? 0 : 1;
  while (more == 0) {
    rows.clear();
    if (MYSQL_RES* result = mysql_store_result(mysql_)) {
      const unsigned columns = mysql_num_fields(result);
      while (MYSQL_ROW cells = mysql_fetch_row(result)) {
        const unsigned long* sizes = mysql_fetch_lengths(result);
        Row& row = rows.emplace_back(columns);
        for (unsigned i = 0; i < columns; ++i) {
          if (cells[i] != nullptr) row[i].emplace(cells[i], sizes[i]);
        }
      }
      mysql_free_result(result);
    }
    more = mysql_next_result(mysql_);
  }
  error_ = mysql_error(mysql_);
  return more > 0 ? mysql_errno(mysql_) : 0;
}

SqlSession::Rows SqlSession::Exec(const std::string& sql) {
  Rows rows;
  const unsigned failed = Run(sql, rows);
  EXPECT_EQ(failed, 0U) << sql << "\n" << error_;
  return rows;
}

unsigned SqlSession::Try(const std::string& sql) {
  Rows rows;
  return Run(sql, rows);
}

std::string SqlSession::Value(const std::string& sql) {
  const Rows rows = Exec(sql);
  if (rows.size() != 1 || rows[0].size() != 1) {
    ADD_FAILURE() << sql << " has " << rows.size() << " rows";
    return "";
  }
  return rows[0][0].value_or("NULL");
}

MariaDb::MariaDb(std::vector<std::string> arguments)
    : arguments_(std::move(arguments)), folder_("mariadb"), socket_(folder_.path() + "/socket") {
  std::filesystem::create_directory(folder_.path() + "/tmp");
  Install();
  Start();
  Exec(
      "CREATE DATABASE leaf; CREATE USER leaf@'%' IDENTIFIED BY 'secret'; GRANT SELECT, INSERT, "
      "UPDATE, DELETE, CREATE, ALTER, DROP, "
      "INDEX ON leaf.* TO leaf@'%'");
}

MariaDb::~MariaDb() { root_.reset(); }

void MariaDb::Install() {
  std::vector<std::string> words = Common(folder_.path());
  words.insert(words.begin(), "mariadb-install-db");
  words.insert(words.end(), {"--auth-root-authentication-method=normal", "--skip-test-db"});
  RunOrGiveUp(words, folder_.path() + "/install.log");
}

void MariaDb::Spawn() {
  std::vector<std::string> words = Common(folder_.path());
  words.insert(words.begin(), Daemon());
  words.insert(words.end(), {"--socket=" + socket_, "--port=" + std::to_string(port_),
                             "--bind-address=127.0.0.1", "--pid-file=" + folder_.path() + "/pid",
                             "--performance-schema=off", "--max-connections=300"});
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  process_.Launch(words, Log());
}

void MariaDb::Start() {
  StartServer(
      process_, port_, Log(), [this] { Spawn(); },
      [this] {
        root_ = Connect();
        return root_->connected();
      });
}

void MariaDb::Restart(std::vector<std::string> arguments) {
  Stop();
  arguments_ = std::move(arguments);
  Start();
}

void MariaDb::Stop() {
  root_.reset();
  process_.Stop(SIGTERM);
}

void MariaDb::Kill9() {
  root_.reset();
  process_.Kill9();
}

SqlSession& MariaDb::root() {
  if (root_ == nullptr || !root_->connected()) root_ = Connect();
  return *root_;
}

StoreOptions MariaDb::options() const {
  StoreOptions options;
  options.kind = "mysql";
  options.host = "127.0.0.1";
  options.port = port_;
  options.database = "leaf";
  options.user = "leaf";
  options.password = "secret";
  options.parameters["ssl-mode"] = "disabled";
  return options;
}

void MariaDb::MakeTable(const std::string& options) {
  Exec(
      "DROP VIEW IF EXISTS leaf.leaf_alloc; DROP TABLE IF EXISTS leaf.leaf_alloc; CREATE TABLE "
      "leaf.leaf_alloc (biz_tag varchar(128) NOT NULL "
      "DEFAULT '', max_id bigint(20) NOT NULL DEFAULT '1', step int(11) NOT NULL, description "
      "varchar(256) DEFAULT NULL, update_time "
      "timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY "
      "(biz_tag)) " +
      options);
}

}  // namespace leaf::harness
