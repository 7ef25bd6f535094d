#include "store/mysql/mysql_server_probe.h"

#include <algorithm>
#include <charconv>

namespace leaf {
namespace {

constexpr std::string_view kVariables =
    "'server_uuid','server_uid','hostname','port','datadir','server_id','lower_case_table_names',"
    "'read_only','super_read_only','innodb_read_only','tx_read_only','transaction_read_only',"
    "'innodb_flush_log_at_trx_commit','innodb_flush_method','log_bin','sync_binlog',"
    "'rpl_semi_sync_master_enabled','rpl_semi_sync_master_wait_point','rpl_semi_sync_master_"
    "timeout',"
    "'rpl_semi_sync_master_wait_no_slave','rpl_semi_sync_source_enabled','rpl_semi_sync_source_"
    "wait_point',"
    "'rpl_semi_sync_source_timeout','rpl_semi_sync_source_wait_no_replica','wsrep_on','wsrep_"
    "provider'";
constexpr std::string_view kStatus =
    "'Rpl_semi_sync_master_status','Rpl_semi_sync_master_clients','Rpl_semi_sync_source_status',"
    "'Rpl_semi_sync_source_clients','wsrep_cluster_status','wsrep_cluster_size','wsrep_cluster_"
    "state_uuid',"
    "'wsrep_ready','Innodb_redo_log_enabled'";
constexpr std::size_t kMaxVariables = 100;
// MySQL's largest value; MariaDB's is larger. 49 days: no replica that is away that long goes
// unnoticed.
constexpr std::uint64_t kLongestTimeoutMs = 4294967295;

std::string Lower(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return lower;
}

// `side` is "master" or, on newer MySQL, "source".
bool SemiSync(const MysqlVariables& variables, const std::string& side, std::string_view replica) {
  const std::string prefix = "rpl_semi_sync_" + side + "_";
  return variables.on(prefix + "enabled") && variables.on(prefix + "status") &&
         variables.number(prefix + "clients") > 0 &&
         variables.text(prefix + "wait_point") == "AFTER_SYNC" &&
         variables.number(prefix + "timeout") >= kLongestTimeoutMs &&
         variables.on(prefix + "wait_no_" + std::string(replica));
}

}  // namespace

Result<MysqlVariables> MysqlVariables::Read(MysqlConnection& connection, Instant deadline) {
  MysqlVariables variables;
  for (const std::string& query :
       {"SHOW GLOBAL VARIABLES WHERE Variable_name IN (" + std::string(kVariables) + ")",
        "SHOW GLOBAL STATUS WHERE Variable_name IN (" + std::string(kStatus) + ")"}) {
    LEAF_ASSIGN_OR_RETURN(std::vector<MysqlConnection::Cells> rows,
                          connection.Select(query, kMaxVariables, deadline));
    for (MysqlConnection::Cells& row : rows) {
      if (row.size() == 2 && row[0]) variables.values_[Lower(*row[0])] = row[1].value_or("");
    }
  }
  return variables;
}

bool MysqlVariables::has(std::string_view name) const {
  return values_.find(name) != values_.end();
}

std::string_view MysqlVariables::text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string_view() : std::string_view(found->second);
}

bool MysqlVariables::on(std::string_view name) const {
  const std::string value = Lower(text(name));
  return value == "on" || value == "yes" || value == "1";
}

std::uint64_t MysqlVariables::number(std::string_view name) const {
  const std::string_view value = text(name);
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), number);
  return failed == std::errc() && end == value.data() + value.size() ? number : 0;
}

bool IsGalera(const MysqlVariables& variables) {
  const std::string_view provider = variables.text("wsrep_provider");
  return variables.on("wsrep_on") && !provider.empty() && provider != "none";
}

// MariaDB's server_uid comes from the network card and the port, so two data folders that follow
// each other on one port share it: the folder is part of the name.
std::string MysqlIdentity(const MysqlVariables& variables) {
  if (IsGalera(variables))
    return "galera:" + std::string(variables.text("wsrep_cluster_state_uuid"));
  if (const std::string_view uuid = variables.text("server_uuid"); !uuid.empty())
    return "mysql:" + std::string(uuid);
  std::string host(variables.text("server_uid"));
  if (host.empty())
    host = std::string(variables.text("hostname")) + ":" + std::string(variables.text("port"));
  return "mariadb:" + host + ":" + std::string(variables.text("datadir"));
}

namespace {

// For a server that is no replica.
std::string HowToWrite(const std::string& name) {
  if (name == "innodb_read_only") return ", or start it without innodb_read_only";
  return " or, where this is the primary, run SET GLOBAL " + name + " = 0;";
}

}  // namespace

Result<void> CheckWritable(const MysqlVariables& variables) {
  for (const char* name : {"read_only", "super_read_only", "innodb_read_only", "tx_read_only",
                           "transaction_read_only"}) {
    if (!variables.has(name)) continue;
    const std::string_view value = variables.text(name);
    if (value == "OFF" || value == "0") continue;
    return Error{Code::kUnavailable,
                 "the server is read-only (" + std::string(name) + " = " + std::string(value) +
                     "), as a replica is; point store.url at the primary" + HowToWrite(name)};
  }
  if (!IsGalera(variables)) return {};
  if (variables.text("wsrep_cluster_status") != "Primary") {
    return Error{Code::kUnavailable,
                 "this node of the Galera cluster is not part of its primary component "
                 "(wsrep_cluster_status = " +
                     std::string(variables.text("wsrep_cluster_status")) + ")"};
  }
  if (!variables.on("wsrep_ready")) {
    return Error{Code::kUnavailable,
                 "this node of the Galera cluster takes no statements yet (wsrep_ready = " +
                     std::string(variables.text("wsrep_ready")) +
                     "): it waits for the state of another node"};
  }
  return {};
}

std::string MysqlSettingsText(const MysqlVariables& variables) {
  std::string text = "HEX(CONCAT_WS('|'";
  for (const char* name :
       {"read_only", "super_read_only", "innodb_flush_log_at_trx_commit", "sync_binlog",
        "rpl_semi_sync_master_enabled", "rpl_semi_sync_master_wait_point",
        "rpl_semi_sync_master_timeout", "rpl_semi_sync_master_wait_no_slave",
        "rpl_semi_sync_source_enabled", "rpl_semi_sync_source_wait_point",
        "rpl_semi_sync_source_timeout", "rpl_semi_sync_source_wait_no_replica", "wsrep_on",
        "server_id", "server_uuid", "server_uid", "datadir"}) {
    if (variables.has(name)) text += std::string(", @@global.") + name;
  }
  return text + "))";
}

Durability MysqlDurability(const MysqlVariables& variables, std::vector<std::string>& warnings) {
  Durability level = Durability::kPower;
  const auto lower = [&](Durability to, std::string why) {
    level = std::min(level, to);
    warnings.push_back(std::move(why));
  };
  const std::string flush(variables.text("innodb_flush_log_at_trx_commit"));
  const bool cluster = IsGalera(variables) && variables.number("wsrep_cluster_size") >= 2;
  if (flush == "0") {
    // The log is written once a second by a thread of the server's: a killed server forgets
    // commits, unless the other nodes of its cluster remember them.
    lower(cluster ? Durability::kProcess : Durability::kVolatile,
          "innodb_flush_log_at_trx_commit = 0 forgets up to a second of ids when the server dies; "
          "set it to 1, here and in my.cnf: SET GLOBAL innodb_flush_log_at_trx_commit = 1;");
  } else if (flush != "1" && flush != "3") {
    lower(Durability::kProcess, "innodb_flush_log_at_trx_commit = " + flush +
                                    " forgets ids at a power loss; set it to 1, here and in "
                                    "my.cnf: SET GLOBAL innodb_flush_log_at_trx_commit = 1;");
  }
  if (variables.on("log_bin") && variables.text("sync_binlog") != "1") {
    lower(Durability::kProcess, "sync_binlog = " + std::string(variables.text("sync_binlog")) +
                                    ": after a power loss the server rolls back what its binary "
                                    "log had not kept; set it to 1, here and in my.cnf: SET GLOBAL "
                                    "sync_binlog = 1;");
  }
  if (Lower(variables.text("innodb_flush_method")) == "nosync" ||
      Lower(variables.text("innodb_flush_method")) == "littlesync") {
    lower(
        Durability::kProcess,
        "innodb_flush_method = " + std::string(variables.text("innodb_flush_method")) +
            " does not sync its files; in my.cnf, and start it anew: innodb_flush_method = fsync");
  }
  if (variables.has("innodb_redo_log_enabled") && !variables.on("innodb_redo_log_enabled")) {
    lower(Durability::kVolatile,
          "the redo log is switched off; ALTER INSTANCE ENABLE INNODB REDO_LOG;");
  }
  if (level < Durability::kPower) return level;
  const bool copied =
      cluster || SemiSync(variables, "master", "slave") || SemiSync(variables, "source", "replica");
  return copied ? Durability::kReplicated : level;
}

}  // namespace leaf
