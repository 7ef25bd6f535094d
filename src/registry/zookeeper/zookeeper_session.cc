// Only the asynchronous calls of the C library are used: its synchronous ones wait as long as the
// session lives. A completion owns a ticket, a pointer to what the caller waits on, so that one
// that comes late finds its place.

#include "registry/zookeeper/zookeeper_session.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace leaf {
namespace {

constexpr int kSessionTimeoutMs = 6000;  // as Leaf's
constexpr Duration kLogEvery = std::chrono::seconds(10);
constexpr Duration kLongestNap = std::chrono::hours(1);  // a deadline may be kNever

// Failed attempts to connect come several times a second: one line in ten seconds is told, the rest
// is for those who look for it.
void LogLine(const char* message) {
  static std::atomic<std::int64_t> next{0};
  const std::string_view text = message;
  const std::int64_t now = SystemClock().Now().time_since_epoch().count();
  std::int64_t due = next.load(std::memory_order_relaxed);
  if (text.find("ZOO_ERROR") != std::string_view::npos && now >= due &&
      next.compare_exchange_strong(due, now + kLogEvery.count(), std::memory_order_relaxed)) {
    log::Warn("zookeeper client", {{"message", text}});
  } else {
    log::Debug("zookeeper client", {{"message", text}});
  }
}

ZkCode ToCode(int rc) noexcept {
  switch (rc) {
    case ZOK:
      return ZkCode::kOk;
    case ZNONODE:
      return ZkCode::kNoNode;
    case ZNODEEXISTS:
      return ZkCode::kExists;
    case ZBADVERSION:
      return ZkCode::kBadVersion;
    case ZNOAUTH:
    case ZAUTHFAILED:
    case ZINVALIDACL:
    case ZBADARGUMENTS:
    case ZNOTEMPTY:
    case ZNOCHILDRENFOREPHEMERALS:
    case ZINVALIDSTATE:
    case ZMARSHALLINGERROR:
    case ZUNIMPLEMENTED:
      return ZkCode::kRefused;
    default:
      return ZkCode::kUnknown;
  }
}

std::string Reason(int rc) {
  switch (rc) {
    case ZNOAUTH:
      return "the access list refuses it; give this user the right (setAcl), or the user in the "
             "registry's URL";
    case ZAUTHFAILED:
      return "the user and password were refused";
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
      return "the connection was lost before the answer";
    case ZSESSIONEXPIRED:
    case ZINVALIDSTATE:
      return "the session has expired";
    default:
      return zerror(rc);
  }
}

ZkStat ToStat(const Stat& stat) noexcept {
  // A server reports 2 * created - present as cversion.
  const std::int64_t made = (std::int64_t{stat.cversion} + stat.numChildren) / 2;
  return {stat.version, stat.mtime, made};
}

}  // namespace

struct ZkSession::Shared {
  Mutex mu;
  CondVar changed;
  int state GUARDED_BY(mu) = 0;
  bool interrupted GUARDED_BY(mu) = false;
};

// What a call waits on, and the memory that the library writes results into.
struct ZkSession::Call {
  std::shared_ptr<Shared> shared;
  bool done = false;  // by shared->mu, as the reply
  ZkReply reply;
  std::array<zoo_op_t, 3> ops{};
  std::array<zoo_op_result_t, 3> results{};
  std::string path;
  std::array<char, 512> path_buffer{};
  Stat stat{};

  using Ticket = std::shared_ptr<Call>;
  static const void* MakeTicket(const Ticket& call) { return new Ticket(call); }

  template <typename Fill>
  static void Finish(const void* data, int rc, Fill fill) {
    const std::unique_ptr<const Ticket> ticket(static_cast<const Ticket*>(data));
    Call& call = **ticket;
    const MutexLock lock(call.shared->mu);
    call.reply.code = ToCode(rc);
    if (rc == ZOK) {
      fill(call);
    } else {
      call.reply.why = Reason(rc);
    }
    call.done = true;
    call.shared->changed.NotifyAll();
  }
  static void OnVoid(int rc, const void* data) {
    Finish(data, rc, [](Call& call) { call.reply.stat = ToStat(call.stat); });
  }
  static void OnStat(int rc, const Stat* stat, const void* data) {
    Finish(data, rc, [&](Call& call) { call.reply.stat = ToStat(*stat); });
  }
  static void OnData(int rc, const char* value, int size, const Stat* stat, const void* data) {
    Finish(data, rc, [&](Call& call) {
      if (value != nullptr && size > 0) call.reply.text.assign(value, static_cast<size_t>(size));
      call.reply.stat = ToStat(*stat);
    });
  }
  static void OnPath(int rc, const char* value, const Stat* stat, const void* data) {
    Finish(data, rc, [&](Call& call) {
      call.reply.text = value;
      call.reply.stat = ToStat(*stat);
    });
  }
  static void OnNames(int rc, const String_vector* names, const Stat* stat, const void* data) {
    Finish(data, rc, [&](Call& call) {
      for (std::int32_t i = 0; i < names->count; ++i) call.reply.names.emplace_back(names->data[i]);
      call.reply.stat = ToStat(*stat);
    });
  }
  static void OnSession(zhandle_t*, int type, int state, const char*, void* context) {
    if (type != ZOO_SESSION_EVENT) return;
    auto* shared = static_cast<Shared*>(context);
    const MutexLock lock(shared->mu);
    shared->state = state;
    shared->changed.NotifyAll();
  }
  // The library did not take it: no completion comes.
  static void Give(const void* ticket, int rc) {
    if (rc != ZOK) Finish(ticket, rc, [](Call&) {});
  }
};

ZkSession::ZkSession(Options options)
    : options_(std::move(options)), shared_(std::make_shared<Shared>()) {}

ZkSession::~ZkSession() { Close(); }

std::string ZkSession::Full(const std::string& path) const {
  if (path == "/" && !options_.chroot.empty()) return options_.chroot;
  return options_.chroot + path;
}

ZkSession::CallPtr ZkSession::NewCall() const {
  auto call = std::make_shared<Call>();
  call->shared = shared_;
  return call;
}

bool ZkSession::usable() const noexcept {
  return handle_ != nullptr && !doubt_ && is_unrecoverable(handle_) == 0;
}

void ZkSession::Close() noexcept {
  if (handle_ != nullptr) zookeeper_close(std::exchange(handle_, nullptr));
  doubt_ = false;
}

void ZkSession::Interrupt() noexcept {
  const MutexLock lock(shared_->mu);
  shared_->interrupted = true;
  shared_->changed.NotifyAll();
}

void ZkSession::BeginCall() noexcept {
  const MutexLock lock(shared_->mu);
  shared_->interrupted = false;
}

Result<void> ZkSession::Failed(std::string why) {
  Close();
  return Error{Code::kUnavailable, "zookeeper " + options_.servers + ": " + std::move(why)};
}

Result<void> ZkSession::Connect(Instant deadline) {
  if (usable()) return {};
  Close();
  {
    const MutexLock lock(shared_->mu);
    shared_->state = 0;
  }
  zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
  errno = 0;
  handle_ = zookeeper_init2(options_.servers.c_str(), &Call::OnSession, kSessionTimeoutMs, nullptr,
                            shared_.get(), 0, &LogLine);
  if (handle_ == nullptr) {
    const int error = errno;
    return Failed(std::string("no session can be made (") + std::strerror(error) +
                  "); check the names in snowflake.registry");
  }
  LEAF_RETURN_IF_ERROR(AwaitConnected(deadline));
  LEAF_RETURN_IF_ERROR(Authenticate(deadline));
  if (options_.chroot.empty()) return {};
  const ZkReply root = Get("/", deadline);
  if (root.ok() || root.code == ZkCode::kRefused) return {};  // it may be used without being read
  if (root.code != ZkCode::kNoNode) return Failed("reading " + options_.chroot + ": " + root.why);
  return Failed("there is no node " + options_.chroot + "; make it (create " + options_.chroot +
                "), or correct the path in snowflake.registry");
}

Result<void> ZkSession::AwaitConnected(Instant deadline) {
  bool refused = false;
  {
    const MutexLock lock(shared_->mu);
    while (shared_->state != ZOO_CONNECTED_STATE) {
      if (shared_->state == ZOO_AUTH_FAILED_STATE) refused = true;
      const Duration left = deadline - SystemClock().Now();
      if (refused || shared_->interrupted || left <= Duration::zero()) break;
      shared_->changed.WaitFor(shared_->mu, std::min(left, kLongestNap));
    }
    if (shared_->state == ZOO_CONNECTED_STATE) return {};
  }
  if (refused) return Failed("the user and password were refused");
  return Failed("no server answered in time; check that it runs and can be reached");
}

Result<void> ZkSession::Authenticate(Instant deadline) {
  if (options_.user.empty()) return {};
  const std::string word = options_.user + ":" + options_.password;
  const CallPtr call = NewCall();
  const void* ticket = Call::MakeTicket(call);
  Call::Give(ticket, zoo_add_auth(handle_, "digest", word.data(), static_cast<int>(word.size()),
                                  &Call::OnVoid, ticket));
  const ZkReply reply = Await(call, deadline);
  if (reply.ok()) return {};
  return Failed("authentication as " + options_.user + ": " + reply.why);
}

ZkReply ZkSession::Await(const CallPtr& call, Instant deadline) {
  const MutexLock lock(shared_->mu);
  while (!call->done) {
    const Duration left = deadline - SystemClock().Now();
    if (shared_->interrupted || left <= Duration::zero()) break;
    shared_->changed.WaitFor(shared_->mu, std::min(left, kLongestNap));
  }
  if (!call->done) {
    doubt_ = true;
    ZkReply late;
    late.why = "no answer in time";
    return late;
  }
  if (call->reply.code == ZkCode::kUnknown) doubt_ = true;
  return std::move(call->reply);
}

ZkSession::CallPtr ZkSession::StartGet(const std::string& path) {
  const CallPtr call = NewCall();
  const void* ticket = Call::MakeTicket(call);
  Call::Give(ticket, zoo_aget(handle_, Full(path).c_str(), 0, &Call::OnData, ticket));
  return call;
}

ZkReply ZkSession::Get(const std::string& path, Instant deadline) {
  return Await(StartGet(path), deadline);
}

std::vector<ZkReply> ZkSession::GetAll(const std::vector<std::string>& paths, Instant deadline) {
  std::vector<CallPtr> calls;
  calls.reserve(paths.size());
  for (const std::string& path : paths) calls.push_back(StartGet(path));
  std::vector<ZkReply> replies;
  replies.reserve(paths.size());
  for (const CallPtr& call : calls) replies.push_back(Await(call, deadline));
  return replies;
}

ZkReply ZkSession::Children(const std::string& path, Instant deadline) {
  const CallPtr call = NewCall();
  const void* ticket = Call::MakeTicket(call);
  Call::Give(ticket, zoo_aget_children2(handle_, Full(path).c_str(), 0, &Call::OnNames, ticket));
  return Await(call, deadline);
}

ZkReply ZkSession::Create(const std::string& path, std::string_view data, bool sequential,
                          Instant deadline) {
  const CallPtr call = NewCall();
  const void* ticket = Call::MakeTicket(call);
  const ACL_vector* acl = options_.private_nodes ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  Call::Give(
      ticket,
      zoo_acreate2(handle_, Full(path).c_str(), data.data(), static_cast<int>(data.size()), acl,
                   sequential ? ZOO_PERSISTENT_SEQUENTIAL : ZOO_PERSISTENT, &Call::OnPath, ticket));
  ZkReply reply = Await(call, deadline);
  if (reply.ok()) reply.text.erase(0, options_.chroot.size());
  return reply;
}

ZkReply ZkSession::Set(const std::string& path, std::string_view data, std::int32_t version,
                       Instant deadline) {
  const CallPtr call = NewCall();
  const void* ticket = Call::MakeTicket(call);
  Call::Give(ticket, zoo_aset(handle_, Full(path).c_str(), data.data(),
                              static_cast<int>(data.size()), version, &Call::OnStat, ticket));
  return Await(call, deadline);
}

ZkReply ZkSession::Delete(const std::string& path, std::int32_t version, Instant deadline) {
  const CallPtr call = NewCall();
  const void* ticket = Call::MakeTicket(call);
  Call::Give(ticket, zoo_adelete(handle_, Full(path).c_str(), version, &Call::OnVoid, ticket));
  return Await(call, deadline);
}

ZkReply ZkSession::Clock(const std::string& path, Instant deadline) {
  const CallPtr call = NewCall();
  call->path = Full(path);
  const char* name = call->path.c_str();
  const ACL_vector* acl = options_.private_nodes ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
  zoo_create_op_init(&call->ops[0], name, "", 0, acl, ZOO_EPHEMERAL, call->path_buffer.data(),
                     static_cast<int>(call->path_buffer.size()));
  zoo_set_op_init(&call->ops[1], name, "", 0, -1, &call->stat);
  zoo_delete_op_init(&call->ops[2], name, -1);
  const void* ticket = Call::MakeTicket(call);
  Call::Give(ticket, zoo_amulti(handle_, static_cast<int>(call->ops.size()), call->ops.data(),
                                call->results.data(), &Call::OnVoid, ticket));
  return Await(call, deadline);
}

Error ZkSession::Explain(const ZkReply& reply, std::string_view what,
                         const std::string& path) const {
  return {Code::kUnavailable, "zookeeper " + options_.servers + ": " + std::string(what) + " " +
                                  Full(path) + ": " + reply.why};
}

}  // namespace leaf
