#include "harness/etcd.h"

#include <etcd.pb.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "rpc/grpc_channel.h"
#include "store/etcd/etcd_value.h"

namespace leaf::harness {
namespace {

constexpr Duration kPatience = std::chrono::seconds(60);
constexpr Duration kCall = std::chrono::seconds(5);

bool Eventually(const std::function<bool()>& condition) {
  const Instant until = SystemClock().Now() + kPatience;
  while (SystemClock().Now() < until) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace

Etcd::Etcd(Options options) : options_(std::move(options)), folder_("etcd") {
  for (int i = 0; i < options_.members; ++i) {
    auto member = std::make_unique<Member>();
    member->name = "m" + std::to_string(i);
    members_.push_back(std::move(member));
  }
  for (int i = 0; i < 5; ++i) {
    if (TryFirstStart()) return;
  }
  GiveUp("etcd did not start (package etcd-server):\n" + log(0));
}

Etcd::~Etcd() {
  for (const auto& member : members_) member->process.Kill9();
}

// A port that was free may be taken by another program before the server gets it: then all begins
// again, since the members' addresses are part of the cluster.
bool Etcd::TryFirstStart() {
  ++life_;
  for (const auto& member : members_) {
    member->process.Kill9();
    member->data = folder() + "/" + member->name + "." + std::to_string(life_);
    member->log = member->data + ".log";
    member->port = FreePort();
    member->peer_port = FreePort();
  }
  for (int i = 0; i < size(); ++i) Launch(i);
  return AwaitAll();
}

std::string Etcd::Cluster() const {
  std::string cluster;
  for (const auto& member : members_) {
    cluster += (cluster.empty() ? "" : ",") + member->name +
               "=http://127.0.0.1:" + std::to_string(member->peer_port);
  }
  return cluster;
}

void Etcd::Restore(const std::string& file) {
  const Member& member = at(0);
  Kill9();
  std::filesystem::remove_all(member.data);
  Ctl({"snapshot", "restore", file, "--name=" + member.name, "--initial-cluster=" + Cluster(),
       "--initial-advertise-peer-urls=http://127.0.0.1:" + std::to_string(member.peer_port),
       "--data-dir=" + member.data});
  Start();
}

void Etcd::Launch(int index) {
  Member& member = at(index);
  if (member.process.running()) return;
  const std::string client = (options_.cert.empty() ? "http://127.0.0.1:" : "https://127.0.0.1:") +
                             std::to_string(member.port);
  const std::string peer = "http://127.0.0.1:" + std::to_string(member.peer_port);
  std::vector<std::string> words{"etcd",
                                 "--name=" + member.name,
                                 "--data-dir=" + member.data,
                                 "--listen-client-urls=" + client,
                                 "--advertise-client-urls=" + client,
                                 "--listen-peer-urls=" + peer,
                                 "--initial-advertise-peer-urls=" + peer,
                                 "--initial-cluster=" + Cluster(),
                                 "--initial-cluster-state=new",
                                 "--heartbeat-interval=50",
                                 "--election-timeout=500",
                                 "--logger=zap",
                                 "--log-level=warn"};
  if (!options_.cert.empty()) {
    words.push_back("--cert-file=" + options_.cert);
    words.push_back("--key-file=" + options_.key);
  }
  if (!options_.client_ca.empty()) {
    words.push_back("--client-cert-auth");
    words.push_back("--trusted-ca-file=" + options_.client_ca);
  }
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  member.process.Launch(words, member.log);
}

bool Etcd::AwaitAll() {
  for (int i = 0; i < size(); ++i) {
    const bool serves = at(i).process.Await([&] {
      etcdpb::StatusResponse status;
      return Call(i, "/etcdserverpb.Maintenance/Status", etcdpb::StatusRequest(), status) &&
             status.leader() != 0;
    });
    if (!serves) return false;
  }
  return true;
}

void Etcd::Start() {
  for (int i = 0; i < size(); ++i) Launch(i);
  if (!AwaitAll()) GiveUp("etcd did not start again:\n" + log(0));
}

std::string Etcd::servers() const {
  std::string all;
  for (int i = 0; i < size(); ++i) all += (i == 0 ? "" : ",") + address(i);
  return all;
}

StoreOptions Etcd::options() const {
  StoreOptions options;
  options.kind = "etcd";
  options.servers = servers();
  options.path = "/leafd";
  options.display_url = "etcd://" + servers() + "/leafd";
  return options;
}

int Etcd::Leader(int except) {
  int leader = -1;
  const bool found = Eventually([&] {
    for (int i = 0; i < size(); ++i) {
      if (i == except || !at(i).process.running()) continue;
      etcdpb::StatusResponse status;
      if (Call(i, "/etcdserverpb.Maintenance/Status", etcdpb::StatusRequest(), status) &&
          status.leader() == status.header().member_id())
        leader = i;
    }
    return leader >= 0;
  });
  EXPECT_TRUE(found) << "no member leads";
  return leader;
}

void Etcd::AwaitServing(int member) {
  EXPECT_TRUE(Eventually([&] {
    etcdpb::StatusResponse status;
    return Call(member, "/etcdserverpb.Maintenance/Status", etcdpb::StatusRequest(), status) &&
           status.leader() != 0;
  })) << "member "
      << member << " does not serve";
}

template <typename Request, typename Response>
bool Etcd::Call(int member, const char* path, const Request& request, Response& response) {
  rpc::GrpcChannel channel({.endpoints = {{"127.0.0.1", port(member)}}}, SystemClock());
  const Instant deadline = SystemClock().Now() + kCall;
  if (!options_.cert.empty()) {
    // Whom it serves with its certificate, it lets in with it, too.
    const auto tls = rpc::TlsContext::Make({.mode = rpc::TlsSettings::Mode::kRequired,
                                            .ca = "",
                                            .cert = options_.cert,
                                            .key = options_.key});
    if (!tls.ok()) GiveUp(tls.error().message);
    channel.SetTls(*tls);
  }
  rpc::GrpcCall call;
  rpc::GrpcReply reply;
  call.path = path;
  call.request = request.SerializeAsString();
  call.deadline = deadline;
  const Result<void> opened = channel.Open(deadline, [&](Instant) {
    channel.Run({&call, 1}, {&reply, 1});
    return rpc::GrpcChannel::Verdict();
  });
  return opened.ok() && reply.end == rpc::GrpcReply::End::kAnswered &&
         reply.status == rpc::GrpcStatus::kOk && response.ParseFromString(reply.body);
}

template <typename Request, typename Response>
void Etcd::MustCall(const char* path, const Request& request, Response& response) {
  EXPECT_TRUE(Eventually([&] {
    for (int i = 0; i < size(); ++i) {
      if (at(i).process.running() && Call(i, path, request, response)) return true;
    }
    return false;
  })) << path;
}

void Etcd::Put(const std::string& key, std::string_view value) {
  etcdpb::PutRequest request;
  etcdpb::PutResponse response;
  request.set_key(key);
  request.set_value(std::string(value));
  MustCall("/etcdserverpb.KV/Put", request, response);
}

std::optional<std::string> Etcd::Get(const std::string& key) {
  etcdpb::RangeRequest request;
  etcdpb::RangeResponse response;
  request.set_key(key);
  MustCall("/etcdserverpb.KV/Range", request, response);
  if (response.kvs().empty()) return std::nullopt;
  return response.kvs(0).value();
}

void Etcd::DeleteAll(const std::string& prefix) {
  etcdpb::DeleteRangeRequest request;
  etcdpb::DeleteRangeResponse response;
  request.set_key(prefix);
  request.set_range_end(PrefixEnd(prefix));
  MustCall("/etcdserverpb.KV/DeleteRange", request, response);
}

std::int64_t Etcd::Revision() {
  etcdpb::RangeRequest request;
  etcdpb::RangeResponse response;
  request.set_key("/none");
  MustCall("/etcdserverpb.KV/Range", request, response);
  return response.header().revision();
}

void Etcd::Compact(std::int64_t revision) {
  etcdpb::CompactionRequest request;
  etcdpb::CompactionResponse response;
  request.set_revision(revision);
  request.set_physical(true);
  MustCall("/etcdserverpb.KV/Compact", request, response);
}

void Etcd::SetAlarmNoSpace(bool on) {
  etcdpb::StatusResponse status;
  MustCall("/etcdserverpb.Maintenance/Status", etcdpb::StatusRequest(), status);
  etcdpb::AlarmRequest request;
  etcdpb::AlarmResponse response;
  request.set_action(on ? etcdpb::AlarmRequest::ACTIVATE : etcdpb::AlarmRequest::DEACTIVATE);
  request.set_member_id(status.header().member_id());
  request.set_alarm(etcdpb::NOSPACE);
  MustCall("/etcdserverpb.Maintenance/Alarm", request, response);
}

std::string Etcd::Ctl(const std::vector<std::string>& words) {
  std::vector<std::string> all{"env", "ETCDCTL_API=3", "etcdctl", "--endpoints=" + address(0)};
  all.insert(all.end(), words.begin(), words.end());
  const std::string log = folder() + "/ctl.log";
  std::remove(log.c_str());
  RunOrGiveUp(all, log);
  return FileContents(log);
}

}  // namespace leaf::harness
