// What a reservation costs by leafd's driver, beside the bare statement run by the database's own
// library: in turn, round after round, one at a time, each to its own row.
//
//   store_loop --store URL [--rounds N] [--per-round N]
//
// Prints JSON: wall and CPU microseconds of this process per reservation, medians of the rounds.
// The bare statement is the least that does the work: for MySQL one prepared UPDATE with
// LAST_INSERT_ID, for PostgreSQL one UPDATE .. RETURNING with parameters, for SQLite the same
// prepared (a transaction by itself), for etcd one transaction that compares a revision.

#include <libpq-fe.h>
#include <mysql.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "config/config_files.h"
#include "etcd.pb.h"
#include "rpc/grpc_connection.h"
#include "store/etcd/etcd_driver.h"
#include "store/mysql/mysql_driver.h"
#include "store/postgres/postgres_driver.h"
#include "store/sqlite/sqlite_driver.h"

namespace leaf {
namespace {

using Clocked = std::chrono::steady_clock;

constexpr std::int64_t kCount = 1000;
constexpr Duration kPatience = std::chrono::seconds(10);

[[noreturn]] void GiveUp(const std::string& why) {
  std::fprintf(stderr, "store_loop: %s\n", why.c_str());
  std::exit(1);
}

double CpuMicros() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const auto micros = [](const timeval& at) {
    return static_cast<double>(at.tv_sec) * 1e6 + static_cast<double>(at.tv_usec);
  };
  return micros(usage.ru_utime) + micros(usage.ru_stime);
}

/// One reservation.
using Loop = std::function<void()>;

Loop BareMysql(const StoreOptions& store) {
  MYSQL* mysql = mysql_init(nullptr);
  if (mysql_real_connect(mysql, store.host.c_str(), store.user.c_str(), store.password.c_str(),
                         store.database.c_str(), static_cast<unsigned>(store.port), nullptr,
                         0) == nullptr)
    GiveUp(mysql_error(mysql));
  MYSQL_STMT* stmt = mysql_stmt_init(mysql);
  const std::string sql =
      "UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + ?) WHERE biz_tag = 'bare'";
  if (mysql_stmt_prepare(stmt, sql.data(), sql.size()) != 0) GiveUp(mysql_stmt_error(stmt));
  return [stmt] {
    std::int64_t count = kCount;
    MYSQL_BIND bind{};
    bind.buffer_type = MYSQL_TYPE_LONGLONG;
    bind.buffer = &count;
    if (mysql_stmt_bind_param(stmt, &bind) != 0 || mysql_stmt_execute(stmt) != 0 ||
        mysql_stmt_insert_id(stmt) == 0)
      GiveUp(mysql_stmt_error(stmt));
  };
}

Loop BarePostgres(const StoreOptions& store) {
  const std::size_t colon = store.servers.rfind(':');
  PGconn* connection = PQconnectdb(
      ("host=" + store.servers.substr(0, colon) + " port=" + store.servers.substr(colon + 1) +
       " user=" + store.user + " password=" + store.password + " dbname=" + store.database)
          .c_str());
  if (PQstatus(connection) != CONNECTION_OK) GiveUp(PQerrorMessage(connection));
  return [connection] {
    const std::string count = std::to_string(kCount);
    const char* values[] = {count.c_str()};
    PGresult* result =
        PQexecParams(connection,
                     "UPDATE leaf_alloc SET max_id = max_id + $1::bigint WHERE biz_tag = 'bare' "
                     "RETURNING max_id",
                     1, nullptr, values, nullptr, nullptr, 0);
    if (PQntuples(result) != 1) GiveUp(PQerrorMessage(connection));
    PQclear(result);
  };
}

Loop BareSqlite(const StoreOptions& store) {
  sqlite3* db = nullptr;
  if (sqlite3_open(store.path.c_str(), &db) != SQLITE_OK) GiveUp(sqlite3_errmsg(db));
  sqlite3_exec(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL", nullptr, nullptr,
               nullptr);
  sqlite3_stmt* stmt = nullptr;
  if (sqlite3_prepare_v2(
          db, "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = 'bare' RETURNING max_id",
          -1, &stmt, nullptr) != SQLITE_OK)
    GiveUp(sqlite3_errmsg(db));
  return [db, stmt] {
    sqlite3_bind_int64(stmt, 1, kCount);
    if (sqlite3_step(stmt) != SQLITE_ROW || sqlite3_step(stmt) != SQLITE_DONE)
      GiveUp(sqlite3_errmsg(db));
    sqlite3_reset(stmt);
  };
}

Loop BareEtcd(const StoreOptions& store) {
  auto connection = std::make_shared<rpc::GrpcConnection>(SystemClock(), std::size_t{1} << 20);
  const auto server = ParseHostPorts(store.servers, 2379);
  const auto connected = connection->Connect(HostPort{server->front().host, server->front().port},
                                             nullptr, SystemClock().Now() + kPatience);
  if (!connected.ok()) GiveUp(connected.error().message);
  auto revision = std::make_shared<std::int64_t>(0);
  auto max_id = std::make_shared<std::int64_t>(1);
  return [connection, revision, max_id, key = store.path + "/bare"] {
    *max_id += kCount;
    etcdpb::TxnRequest request;
    etcdpb::Compare* const compare = request.add_compare();
    compare->set_key(key);
    if (*revision == 0) {  // whatever is there
      compare->set_target(etcdpb::Compare::VERSION);
      compare->set_result(etcdpb::Compare::NOT_EQUAL);
      compare->set_version(-1);
    } else {
      compare->set_target(etcdpb::Compare::MOD);
      compare->set_result(etcdpb::Compare::EQUAL);
      compare->set_mod_revision(*revision);
    }
    etcdpb::PutRequest* const put = request.add_success()->mutable_request_put();
    put->set_key(key);
    put->set_value(std::to_string(*max_id));
    rpc::GrpcCall call;
    call.path = "/etcdserverpb.KV/Txn";
    call.request = request.SerializeAsString();
    call.deadline = SystemClock().Now() + kPatience;
    rpc::GrpcReply reply;
    connection->Run({&call, 1}, {&reply, 1});
    etcdpb::TxnResponse answer;
    if (reply.end != rpc::GrpcReply::End::kAnswered || !answer.ParseFromString(reply.body) ||
        !answer.succeeded())
      GiveUp("etcd: " + reply.message);
    *revision = answer.header().revision();
  };
}

struct Kind {
  const char* name;
  Result<DriverFactory> (*make)(const StoreOptions&);
  Loop (*bare)(const StoreOptions&);
};
constexpr Kind kKinds[] = {{"sqlite", MakeSqliteFactory, BareSqlite},
                           {"mysql", MakeMysqlFactory, BareMysql},
                           {"postgres", MakePostgresFactory, BarePostgres},
                           {"etcd", MakeEtcdFactory, BareEtcd}};

struct Measured {
  std::vector<double> wall, cpu;

  static double Median(std::vector<double> all) {
    std::sort(all.begin(), all.end());
    return all[all.size() / 2];
  }
};

void Round(const Loop& loop, int times, Measured& measured) {
  const double cpu = CpuMicros();
  const auto begin = Clocked::now();
  for (int i = 0; i < times; ++i) loop();
  const std::chrono::duration<double, std::micro> wall = Clocked::now() - begin;
  measured.wall.push_back(wall.count() / times);
  measured.cpu.push_back((CpuMicros() - cpu) / times);
}

int Measure(const StoreOptions& store, int rounds, int per_round) {
  const auto kind = std::find_if(std::begin(kKinds), std::end(kKinds),
                                 [&](const Kind& each) { return store.kind == each.name; });
  if (kind == std::end(kKinds)) GiveUp("no bare statement for a store of kind " + store.kind);
  const auto factory = kind->make(store);
  if (!factory.ok()) GiveUp(factory.error().message);
  const std::unique_ptr<SegmentDriver> driver = (*factory)();
  const Instant later = SystemClock().Now() + kPatience;
  const auto opened = driver->Open(later);
  if (!opened.ok()) GiveUp(opened.error().message);
  for (const char* tag : {"bare", "driver"}) {
    const auto made = driver->Create(tag, kCount, 1, later);
    if (!made.ok() && made.error().code != Code::kConflict) GiveUp(made.error().message);
  }
  Flight flight = 0;
  const Loop ours = [&] {
    const Ask ask{++flight, "driver", kCount, SystemClock().Now() + kPatience};
    Grant grant;
    driver->Reserve({&ask, 1}, {&grant, 1});
    if (grant.outcome != Outcome::kGranted) GiveUp(grant.error.message);
  };
  const Loop bare = kind->bare(store);
  Measured by_driver, by_library;
  Round(ours, per_round / 10 + 1, by_driver);
  Round(bare, per_round / 10 + 1, by_library);
  by_driver = by_library = {};
  for (int i = 0; i < rounds; ++i) {
    Round(ours, per_round, by_driver);
    Round(bare, per_round, by_library);
  }
  std::printf(
      "{\"store\":\"%s\",\"driver_us\":%.1f,\"bare_us\":%.1f,\"driver_cpu_us\":%.1f,"
      "\"bare_cpu_us\":%.1f}\n",
      kind->name, Measured::Median(by_driver.wall), Measured::Median(by_library.wall),
      Measured::Median(by_driver.cpu), Measured::Median(by_library.cpu));
  return 0;
}

}  // namespace
}  // namespace leaf

int main(int argc, char** argv) {
  int rounds = 9, per_round = 300;
  std::vector<const char*> rest = {argv[0]};
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rounds" && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (std::string(argv[i]) == "--per-round" && i + 1 < argc) {
      per_round = std::max(1, std::atoi(argv[++i]));
    } else {
      rest.push_back(argv[i]);
    }
  }
  const auto command_line = leaf::ParseCommandLine(static_cast<int>(rest.size()), rest.data());
  if (!command_line.ok()) leaf::GiveUp(command_line.error().message);
  const auto config = leaf::LoadConfig(*command_line, leaf::config::ProcessEnvironment());
  if (!config.ok()) leaf::GiveUp(config.error().message);
  return leaf::Measure(config->store, rounds, per_round);
}
