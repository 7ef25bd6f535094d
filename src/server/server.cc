#include "server/server.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "admin/admin.h"
#include "admin/curl_target.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/random.h"
#include "base/time.h"
#include "core/id_service.h"
#include "core/segment/engine.h"
#include "frontend/frontend.h"
#include "frontend/ids_handler.h"
#include "server/snowflake_mode.h"
#include "server/stores.h"
#include "server/wake.h"
#include "state/mark_file.h"
#include "state/state_dir.h"

namespace leaf {
namespace {

constexpr Duration kFlushInterval = std::chrono::milliseconds(100);
constexpr const char* kNoMemory =
    "no memory of an earlier maximum: the journal of marks is new, so a store that went back "
    "before this start cannot be noticed";
constexpr Duration kDrainPoll = std::chrono::milliseconds(10);

std::string Join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

std::unique_ptr<RefillPolicy> MakePolicy(const std::string& name) {
  return name == "fixed" ? MakeFixedPolicy() : MakeLeafPolicy();
}

EngineOptions EngineOptionsOf(const Config& config) {
  EngineOptions options;
  options.wait = config.segment.wait;
  options.store_timeout = config.store.timeout;
  options.refresh = config.segment.refresh;
  options.max_waiters = config.segment.max_waiters;
  options.waste = config.segment.waste;
  options.step = config.segment.step;
  options.auto_create = config.segment.auto_create;
  options.auto_create_limit = config.segment.auto_create_limit;
  options.failover_skip = config.failover_skip;
  options.admin_url = CurlTarget(config.server.admin_listen);
  return options;
}

/// The files that the main listener's bound leaves are also the store's, so where files are few the
/// admin listener takes few.
int AdminConnections(int main_connections) {
  constexpr std::int64_t kAlways = 16, kSpared = 64;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return kAlways;
  const auto most =
      static_cast<std::int64_t>(std::min<rlim_t>(files.rlim_cur, std::numeric_limits<int>::max()));
  return static_cast<int>(
      std::clamp<std::int64_t>(most - kSpared - main_connections, kAlways,
                               std::max<std::int64_t>(kAlways, main_connections)));
}

int SignalFd() {
  sigset_t stop;
  sigemptyset(&stop);
  sigaddset(&stop, SIGTERM);
  sigaddset(&stop, SIGINT);
  sigaddset(&stop, SIGHUP);
  return signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(Config config) : config_(std::move(config)) {}
  ~Impl() { Shutdown(); }

  Result<void> Start();
  void Run();

 private:
  Result<void> StartSegment();
  Result<void> StartSnowflake();
  Result<void> StartListeners();
  void LogStart() const;
  Frontend::Options FrontendOptions(std::vector<std::string> listen, int reactors) const;
  std::vector<const RequestStats*> Stats() const;
  /// One turn of the control loop: timers, then sleep until one is due, something wakes it, or
  /// `at_most`.
  void Turn(Duration at_most);
  void TurnUntil(Instant end, const std::function<bool()>& done);
  void ReadSignals();
  void Drain();
  void Shutdown() noexcept;

  Config config_;
  Clock& clock_ = SystemClock();
  Wake wake_;
  int signal_fd_ = SignalFd();
  std::atomic<bool> draining_{false};
  bool stopping_ = false;
  Instant next_flush_ = Instant::min();
  bool flush_failed_ = false;

  StateDir state_dir_;
  std::unique_ptr<MarkFile> marks_;
  std::unique_ptr<RefillPolicy> policy_;
  std::unique_ptr<SegmentStore> store_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<SnowflakeMode> snowflake_;
  std::unique_ptr<IdService> ids_;
  std::unique_ptr<IdsHandler> ids_handler_;
  std::unique_ptr<Admin> admin_;
  std::unique_ptr<Frontend> main_, admin_listener_;
  std::vector<std::thread> threads_;
};

Result<void> Server::Impl::Start() {
  LEAF_ASSERT(signal_fd_ >= 0);
  LEAF_RETURN_IF_ERROR(state_dir_.Open(config_.server.state_dir));
  if (config_.segment.enabled) LEAF_RETURN_IF_ERROR(StartSegment());
  LEAF_RETURN_IF_ERROR(StartSnowflake());
  IdsHandler::Options options;
  options.leaf_cut_after_dot = config_.compat.cut_after_dot;
  options.reject_encoded_slash = config_.compat.leaf;
  options.disabled_returns_zero = config_.compat.disabled_returns_zero;
  ids_handler_ = std::make_unique<IdsHandler>(*ids_, clock_, options);
  AdminContext context{.ids = *ids_, .store = store_.get(), .clock = clock_};
  context.store_timeout = config_.store.timeout;
  context.min_durability = config_.store.min_durability;
  context.version = LEAFD_VERSION;
  context.started_ms = clock_.WallMillis();
  if (marks_ && !marks_->existed()) context.segment_notice = kNoMemory;
  context.layout = config_.snowflake.layout;
  context.cluster = config_.snowflake.registry.cluster;
  if (snowflake_) context.registry = &snowflake_->registry();
  context.pages_on_main = config_.compat.pages_on_main;
  context.probes_on_main = config_.server.probes_on_main;
  context.reject_encoded_slash = config_.compat.leaf;
  context.disabled_returns_zero = config_.compat.disabled_returns_zero;
  context.draining = [this] { return draining_.load(std::memory_order_relaxed); };
  context.stats = [this] { return Stats(); };
  admin_ = std::make_unique<Admin>(std::move(context));
  LEAF_RETURN_IF_ERROR(StartListeners());
  LogStart();
  return {};
}

Result<void> Server::Impl::StartSegment() {
  marks_ = std::make_unique<MarkFile>(config_.server.state_dir + "/" + MarkFileName(config_.store));
  policy_ = MakePolicy(config_.segment.policy);
  LEAF_ASSIGN_OR_RETURN(store_, MakeStore(config_.store, clock_));
  engine_ = std::make_unique<Engine>(EngineOptionsOf(config_), *store_, *marks_, *policy_, clock_,
                                     SystemRandom());
  engine_->SetWake([this] { wake_.Signal(); });
  LEAF_RETURN_IF_ERROR(engine_->Load());
  if (config_.segment.require_marks && !marks_->existed()) {
    return Error{Code::kUnavailable,
                 "segment.require_marks is true, but " + config_.server.state_dir +
                     " holds no journal of marks for this store: a database that went back could "
                     "not be noticed. "
                     "Restore the state folder, or start once with segment.require_marks = false"};
  }
  return {};
}

Result<void> Server::Impl::StartSnowflake() {
  const Config::Snowflake& snowflake = config_.snowflake;
  Error off{Code::kDisabled, "snowflake mode is disabled: " + snowflake.disabled_reason};
  if (snowflake.enabled && !snowflake.unavailable_reason.empty()) {
    off = Error{Code::kUnavailable, snowflake.unavailable_reason};
  } else if (snowflake.enabled) {
    LEAF_ASSIGN_OR_RETURN(snowflake_,
                          SnowflakeMode::Make(config_, clock_, [this] { wake_.Signal(); }));
  }
  ids_ = std::make_unique<IdService>(engine_.get(),
                                     IdLimits{config_.segment.max_list, config_.segment.max_count},
                                     snowflake_ ? &snowflake_->engine() : nullptr, std::move(off));
  return {};
}

Frontend::Options Server::Impl::FrontendOptions(std::vector<std::string> listen,
                                                int reactors) const {
  Frontend::Options options;
  options.listen = std::move(listen);
  options.reactors = reactors;
  options.limits.max_request_line = config_.server.max_request_line;
  options.limits.max_header = config_.server.max_header;
  options.limits.max_header_fields = config_.server.max_header_fields;
  options.limits.max_body = config_.server.max_body;
  options.max_connections = config_.server.max_connections;
  options.max_connections_per_ip = config_.server.max_connections_per_ip;
  options.header_timeout = config_.server.header_timeout;
  options.idle_timeout = config_.server.idle_timeout;
  return options;
}

Result<void> Server::Impl::StartListeners() {
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int reactors = config_.server.threads > 0 ? config_.server.threads : cores;
  main_ = std::make_unique<Frontend>(
      FrontendOptions(config_.server.listen, reactors), ids_handler_.get(),
      std::vector<http1::Service*>{&admin_->main_service()}, engine_.get(), clock_);
  LEAF_RETURN_IF_ERROR(main_->Listen());
  if (!config_.server.admin_listen.empty()) {
    Frontend::Options options = FrontendOptions({config_.server.admin_listen}, 1);
    options.max_connections = AdminConnections(config_.server.max_connections);
    admin_listener_ = std::make_unique<Frontend>(
        std::move(options), nullptr, std::vector<http1::Service*>{&admin_->admin_service()},
        nullptr, clock_);
    LEAF_RETURN_IF_ERROR(admin_listener_->Listen());
  }
  for (int i = 0; i < reactors; ++i) {
    threads_.emplace_back([this, i] { main_->Run(i); });
  }
  if (admin_listener_) {
    threads_.emplace_back([this] { admin_listener_->Run(0); });
  }
  return {};
}

void Server::Impl::LogStart() const {
  for (const std::string& warning : config_.warnings) log::Warn(warning);
  for (const std::string& notice : config_.notices) log::Info(notice);
  if (!state_dir_.warning().empty()) log::Warn(state_dir_.warning());
  log::Info("leafd is listening",
            {{"version", LEAFD_VERSION},
             {"listen", Join(main_->addresses())},
             {"admin", admin_listener_ ? Join(admin_listener_->addresses()) : std::string("off")},
             {"store", config_.segment.enabled ? config_.store.display_url : std::string("none")},
             {"state_dir", config_.server.state_dir}});
  if (marks_ && !marks_->existed()) log::Info(kNoMemory);
  if (!config_.segment.enabled) log::Warn("segment mode is disabled by configuration");
  const Config::Snowflake& snowflake = config_.snowflake;
  if (!snowflake.enabled) {
    log::Info("snowflake mode is disabled", {{"reason", snowflake.disabled_reason}});
  } else if (!snowflake.unavailable_reason.empty()) {
    log::Warn("snowflake mode is unavailable", {{"reason", snowflake.unavailable_reason}});
  } else {
    log::Info("snowflake mode is on", {{"registry", snowflake.registry.display_url},
                                       {"cluster", snowflake.registry.cluster},
                                       {"identity", snowflake.registry.identity},
                                       {"layout", LayoutText(snowflake.layout)}});
  }
}

std::vector<const RequestStats*> Server::Impl::Stats() const {
  std::vector<const RequestStats*> stats;
  for (const auto* frontend : {main_.get(), admin_listener_.get()}) {
    if (frontend == nullptr) continue;
    for (int i = 0; i < frontend->reactors(); ++i) stats.push_back(&frontend->stats(i));
  }
  return stats;
}

void Server::Impl::ReadSignals() {
  signalfd_siginfo info{};
  while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    if (stopping_) {
      log::Warn("second signal: ending at once");
      log::Stop();
      _exit(1);
    }
    stopping_ = true;
  }
}

void Server::Impl::Turn(Duration at_most) {
  const Instant now = clock_.Now();
  Instant due = now + at_most;
  if (engine_) due = std::min(due, engine_->Tick(now));
  if (snowflake_) due = std::min(due, snowflake_->Tick(now));
  if (marks_ && now >= next_flush_) {
    const auto flushed = marks_->Flush();
    if (!flushed.ok() && !flush_failed_)
      log::Warn("the journal of marks cannot be written", {{"reason", flushed.error().message}});
    flush_failed_ = !flushed.ok();
    next_flush_ = now + kFlushInterval;
  }
  if (marks_) due = std::min(due, next_flush_);
  // Rounded up, so that the loop does not spin through the last part of a millisecond.
  const auto wait =
      std::chrono::ceil<std::chrono::milliseconds>(std::max(Duration::zero(), due - clock_.Now()));
  pollfd fds[] = {{signal_fd_, POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
  if (poll(fds, 2, static_cast<int>(std::min<std::int64_t>(wait.count(), 60'000))) > 0) {
    if (fds[1].revents != 0) wake_.Clear();
    if (fds[0].revents != 0) ReadSignals();
  }
}

void Server::Impl::TurnUntil(Instant end, const std::function<bool()>& done) {
  while (!done()) {
    const Instant now = clock_.Now();
    if (now >= end) return;
    Turn(std::min(kDrainPoll, end - now));
  }
}

void Server::Impl::Run() {
  while (!stopping_) Turn(std::chrono::seconds(60));
  Drain();
}

void Server::Impl::Drain() {
  log::Info("stopping: draining");
  draining_.store(true, std::memory_order_relaxed);
  const Instant end = clock_.Now() + config_.server.drain_delay + config_.server.drain;
  TurnUntil(clock_.Now() + config_.server.drain_delay, [] { return false; });
  main_->Drain();
  TurnUntil(end, [this] { return main_->drained(); });
  if (!main_->drained())
    log::Warn("connections are cut at the end of server.drain",
              {{"connections", main_->connections()}});
  if (snowflake_) snowflake_->Close([this] { wake_.Signal(); });
  std::atomic<bool> closed{engine_ == nullptr};
  if (engine_) {
    engine_->Close([this, &closed] {
      closed.store(true);
      wake_.Signal();
    });
  }
  // Each step of the two has its own deadline, so this ends; the fsync of the marks has none, hence
  // no bound here.
  while (!closed.load() || (snowflake_ && !snowflake_->closed())) Turn(kDrainPoll);
  log::Info("stopped");
}

void Server::Impl::Shutdown() noexcept {
  if (main_) main_->Stop();
  if (admin_listener_) admin_listener_->Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  store_.reset();  // no callback into the engines or the admin API after these two
  if (snowflake_) snowflake_->EndRegistry();
  admin_listener_.reset();
  main_.reset();
  admin_.reset();
  engine_.reset();
  snowflake_.reset();
  if (signal_fd_ >= 0) close(signal_fd_);
  signal_fd_ = -1;
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::Start(Config config) {
  auto impl = std::make_unique<Impl>(std::move(config));
  LEAF_RETURN_IF_ERROR(impl->Start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

void Server::Run() { impl_->Run(); }

}  // namespace leaf
