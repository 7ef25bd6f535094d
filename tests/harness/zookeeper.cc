#define THREADED  // the library's synchronous calls are good enough here
#include "harness/zookeeper.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <thread>

#ifdef __SANITIZE_THREAD__
// The C library prints addresses for its log into one static buffer, from all of its threads, by a
// call that nothing of ours makes.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race:vsprintf"; }
#endif

namespace leaf::harness {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto kStart = std::chrono::seconds(60);

sockaddr_in Loopback(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  at.sin_port = htons(static_cast<std::uint16_t>(port));
  return at;
}

// The server's own word that it serves.
bool SaysImOk(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in at = Loopback(port);
  bool ok = false;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 &&
      send(fd, "ruok", 4, MSG_NOSIGNAL) == 4) {
    char answer[4] = {};
    ok = recv(fd, answer, sizeof answer, MSG_WAITALL) == 4 &&
         std::string_view(answer, sizeof answer) == "imok";
  }
  close(fd);
  return ok;
}

void Quiet(const char*) {}

}  // namespace

ZkClient::ZkClient(int port, const std::string& auth) {
  const std::string server = "127.0.0.1:" + std::to_string(port);
  handle_ = zookeeper_init2(
      server.c_str(), [](zhandle_t*, int, int, const char*, void*) {}, 30'000, nullptr, nullptr, 0,
      &Quiet);
  const auto until = steady_clock::now() + kStart;
  while (handle_ != nullptr && zoo_state(handle_) != ZOO_CONNECTED_STATE &&
         steady_clock::now() < until)
    std::this_thread::sleep_for(milliseconds(5));
  if (handle_ == nullptr || zoo_state(handle_) != ZOO_CONNECTED_STATE)
    GiveUp("no session with " + server);
  if (!auth.empty()) {
    zoo_add_auth(
        handle_, "digest", auth.data(), static_cast<int>(auth.size()), [](int, const void*) {},
        nullptr);
  }
}

ZkClient::~ZkClient() { zookeeper_close(handle_); }

void ZkClient::Create(const std::string& path, std::string_view data) {
  const std::size_t slash = path.rfind('/');
  if (slash > 0 && !Exists(path.substr(0, slash))) Create(path.substr(0, slash), "");
  EXPECT_EQ(zoo_create(handle_, path.c_str(), data.data(), static_cast<int>(data.size()),
                       &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, nullptr, 0),
            ZOK)
      << path;
}

std::string ZkClient::CreateSequential(const std::string& path, std::string_view data) {
  std::string made(path.size() + 32, '\0');
  EXPECT_EQ(zoo_create(handle_, path.c_str(), data.data(), static_cast<int>(data.size()),
                       &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT_SEQUENTIAL, made.data(),
                       static_cast<int>(made.size())),
            ZOK)
      << path;
  return made.c_str();
}

void ZkClient::CreateEphemeral(const std::string& path) {
  EXPECT_EQ(
      zoo_create(handle_, path.c_str(), "", 0, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, nullptr, 0),
      ZOK)
      << path;
}

void ZkClient::Set(const std::string& path, std::string_view data) {
  EXPECT_EQ(zoo_set(handle_, path.c_str(), data.data(), static_cast<int>(data.size()), -1), ZOK)
      << path;
}

void ZkClient::Delete(const std::string& path) {
  for (const std::string& child : Children(path)) Delete(path + "/" + child);
  EXPECT_EQ(zoo_delete(handle_, path.c_str(), -1), ZOK) << path;
}

std::string ZkClient::Get(const std::string& path) {
  std::string data(4096, '\0');
  int size = static_cast<int>(data.size());
  EXPECT_EQ(zoo_get(handle_, path.c_str(), 0, data.data(), &size, nullptr), ZOK) << path;
  data.resize(static_cast<std::size_t>(std::max(size, 0)));
  return data;
}

std::int32_t ZkClient::Version(const std::string& path) {
  Stat stat{};
  EXPECT_EQ(zoo_exists(handle_, path.c_str(), 0, &stat), ZOK) << path;
  return stat.version;
}

bool ZkClient::Exists(const std::string& path) {
  Stat stat{};
  const int rc = zoo_exists(handle_, path.c_str(), 0, &stat);
  EXPECT_TRUE(rc == ZOK || rc == ZNONODE) << path << ": " << zerror(rc);
  return rc == ZOK;
}

std::vector<std::string> ZkClient::Children(const std::string& path) {
  String_vector names{};
  EXPECT_EQ(zoo_get_children(handle_, path.c_str(), 0, &names), ZOK) << path;
  std::vector<std::string> children(names.data, names.data + names.count);
  deallocate_String_vector(&names);
  std::sort(children.begin(), children.end());
  return children;
}

std::string ZkClient::Acl(const std::string& path) {
  ACL_vector acl{};
  Stat stat{};
  EXPECT_EQ(zoo_get_acl(handle_, path.c_str(), &acl, &stat), ZOK) << path;
  std::string text;
  for (std::int32_t i = 0; i < acl.count; ++i) {
    text += std::string(text.empty() ? "" : " ") + acl.data[i].id.scheme + ":" + acl.data[i].id.id +
            ":" + std::to_string(acl.data[i].perms);
  }
  deallocate_ACL_vector(&acl);
  return text;
}

void ZkClient::MakePrivate(const std::string& path) {
  EXPECT_EQ(zoo_set_acl(handle_, path.c_str(), -1, &ZOO_CREATOR_ALL_ACL), ZOK) << path;
}

ZooKeeper::ZooKeeper(std::chrono::milliseconds max_session)
    : max_session_(max_session), folder_("zookeeper") {
  Start();
}

void ZooKeeper::Spawn() {
  const std::string config = folder_.path() + "/zoo.cfg";
  std::ofstream(config) << "tickTime=500\nminSessionTimeout=1000\n"
                        << "maxSessionTimeout=" << max_session_.count()
                        << "\ndataDir=" << folder_.path() << "/data\nclientPort=" << port_
                        << "\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                        << "4lw.commands.whitelist=ruok,srvr\nmaxClientCnxns=0\n";
  process_.Launch({"java", "-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
                   "-Dzookeeper.forceSync=no", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                   "-cp", "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar",
                   "org.apache.zookeeper.server.quorum.QuorumPeerMain", config},
                  folder_.path() + "/log");
}

void ZooKeeper::Start() {
  StartServer(
      process_, port_, folder_.path() + "/log", [this] { Spawn(); },
      [this] { return SaysImOk(port_); });
}

void ZooKeeper::StartAt(int port) {
  port_ = port;
  Start();
}

void ZooKeeper::ForgetSessions() {
  const int port = port_;
  const auto away = Connect();
  away->CreateEphemeral("/harness-session");
  Stop();
  StartAt(FreePort());
  const auto here = Connect();
  const auto until = steady_clock::now() + kStart;
  while (here->Exists("/harness-session")) {
    if (steady_clock::now() > until) GiveUp("a session without a client does not expire");
    std::this_thread::sleep_for(milliseconds(20));
  }
  Stop();
  StartAt(port);
}

void ZooKeeper::Stop() { process_.Stop(SIGTERM); }

}  // namespace leaf::harness
