// One thread, one epoll. A request is put down as sent before its bytes are written, and as
// answered after they were read, so that the order which idcheck derives from the times is never
// stricter than what happened. A connection that dies takes its unanswered requests with it as
// unsure; the next one is a new client in the history.

#include "load.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <sstream>

#include "history.h"

namespace leaf::tools {
namespace {

constexpr std::int64_t kMillis = 1'000'000;
constexpr std::int64_t kReconnectPause = 10 * kMillis;
constexpr std::int64_t kScanInterval = 20 * kMillis;

volatile std::sig_atomic_t g_stop = 0;
void OnSignal(int) { g_stop = 1; }

std::int64_t NowNs() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}
std::int64_t Nanos(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }

struct Pending {
  std::uint64_t seq;
  std::int64_t sent;
  std::uint32_t tag;
};

struct Connection {
  int fd = -1;
  bool standing = false;
  std::uint32_t client = 0;
  std::uint16_t server = 0;
  int allowance = 0;  // requests left in this round
  std::int64_t retry_at = 0;
  std::string in, out;
  std::deque<Pending> pending;
};

bool Resolve(const std::string& target, sockaddr_storage& address, socklen_t& size) {
  const std::size_t colon = target.rfind(':');
  if (colon == std::string::npos) return false;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(target.substr(0, colon).c_str(), target.substr(colon + 1).c_str(), &hints,
                  &found) != 0)
    return false;
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  size = found->ai_addrlen;
  freeaddrinfo(found);
  return true;
}

std::string PathOf(const LoadOptions& options, const std::string& tag) {
  const std::string count = "?n=" + std::to_string(options.n);
  switch (options.form) {
    case AnswerForm::kLeaf:
      return (options.snowflake ? "/api/snowflake/get/" : "/api/segment/get/") + tag;
    case AnswerForm::kIds:
      return options.snowflake ? "/api/v1/snowflake" + count : "/api/v1/ids/" + tag + count;
    case AnswerForm::kRanges:
      return "/api/v1/ranges/" + tag + count;
  }
  return "/";
}

class Load {
 public:
  explicit Load(const LoadOptions& options) : options_(options), requests_left_(options.requests) {}
  ~Load();
  LoadReport Run();

 private:
  struct Target {
    sockaddr_storage address{};
    socklen_t size = 0;
  };

  bool Prepare();
  void PrepareTags();
  void Turn();
  void Open(Connection& connection);
  void Opened(Connection& connection);
  void Drop(Connection& connection, bool retry_at_once);
  void Fill(Connection& connection);
  bool MaySend(const Connection& connection) const;
  void Flush(Connection& connection);
  void Receive(Connection& connection);
  bool Digest(Connection& connection);
  void Note(const Connection& connection, const Pending& pending, const Answer* answer);
  void Scan();
  void StartRound();
  void Watch(const Connection& connection, int operation, bool writing);
  bool Ended() const;

  const LoadOptions& options_;
  LoadReport report_;
  std::unique_ptr<HistoryWriter> history_;
  std::vector<Target> targets_;
  std::vector<std::string> request_texts_;  // by tag
  std::vector<Connection> connections_;
  int epoll_ = -1;
  int standing_ = 0;
  int rounds_begun_ = 0;
  bool released_ = false;
  bool stopping_ = false;
  std::int64_t requests_left_;
  std::int64_t outstanding_ = 0;
  std::int64_t now_ = 0, started_ = 0, stop_at_ = 0, last_ok_ = 0, last_standing_ = 0,
               next_scan_ = 0;
  double next_send_ = 0;
  std::uint64_t next_seq_ = 0;
  std::uint32_t next_client_ = 0;
  std::size_t next_tag_ = 0, cursor_ = 0;
};

Load::~Load() {
  for (const Connection& connection : connections_) {
    if (connection.fd >= 0) close(connection.fd);
  }
  if (epoll_ >= 0) close(epoll_);
}

void Load::PrepareTags() {
  for (std::size_t i = 0; i < options_.tags.size(); ++i) {
    const std::string& tag = options_.tags[i];
    if (history_ != nullptr) history_->NameTag(static_cast<std::uint32_t>(i), tag);
    request_texts_.push_back("GET " + PathOf(options_, tag) + " HTTP/1.1\r\nHost: idload\r\n\r\n");
  }
}

bool Load::Prepare() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  if (!options_.history.empty()) history_ = std::make_unique<HistoryWriter>(options_.history);
  PrepareTags();
  targets_.resize(options_.targets.size());
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    if (!Resolve(options_.targets[i], targets_[i].address, targets_[i].size)) {
      report_.error = "cannot resolve " + options_.targets[i];
      return false;
    }
    if (history_ != nullptr)
      history_->NameServer(static_cast<std::uint16_t>(i), options_.targets[i]);
  }
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  connections_.resize(static_cast<std::size_t>(options_.connections));
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    connections_[i].server = static_cast<std::uint16_t>(i % targets_.size());
  }
  return epoll_ >= 0;
}

void Load::Watch(const Connection& connection, int operation, bool writing) {
  epoll_event event{};
  event.events = writing ? (EPOLLIN | EPOLLOUT) : EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(&connection - connections_.data());
  epoll_ctl(epoll_, operation, connection.fd, &event);
}

void Load::Open(Connection& connection) {
  const Target& target = targets_[connection.server];
  connection.client = next_client_++;
  connection.fd = socket(target.address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connection.fd < 0) {
    connection.retry_at = now_ + kReconnectPause;
    return;
  }
  const int on = 1;
  setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int done =
      connect(connection.fd, reinterpret_cast<const sockaddr*>(&target.address), target.size);
  if (done != 0 && errno != EINPROGRESS) {
    ++report_.connect_failures;
    Drop(connection, false);
    return;
  }
  Watch(connection, EPOLL_CTL_ADD, true);
}

void Load::Opened(Connection& connection) {
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(connection.fd, SOL_SOCKET, SO_ERROR, &error, &size);
  if (error != 0) {
    ++report_.connect_failures;
    Drop(connection, false);
    return;
  }
  connection.standing = true;
  ++standing_;
  last_standing_ = now_;
  Watch(connection, EPOLL_CTL_MOD, false);
}

void Load::Drop(Connection& connection, bool retry_at_once) {
  if (connection.standing) {
    --standing_;
    ++report_.reconnects;
  }
  close(connection.fd);
  for (const Pending& pending : connection.pending) Note(connection, pending, nullptr);
  const std::uint16_t server = connection.server;
  const int allowance = connection.allowance;
  connection = Connection();
  connection.server = server;
  connection.allowance = allowance;
  connection.retry_at = retry_at_once ? now_ : now_ + kReconnectPause;
}

bool Load::MaySend(const Connection& connection) const {
  if (!connection.standing || stopping_ || !released_) return false;
  if (connection.pending.size() >= static_cast<std::size_t>(options_.pipeline)) return false;
  if (options_.rounds > 0 && connection.allowance == 0) return false;
  if (options_.requests > 0 && requests_left_ == 0) return false;
  return options_.rate <= 0 || static_cast<double>(now_) >= next_send_;
}

void Load::Fill(Connection& connection) {
  while (MaySend(connection)) {
    const auto tag = static_cast<std::uint32_t>(next_tag_++ % request_texts_.size());
    connection.out += request_texts_[tag];
    connection.pending.push_back({next_seq_++, NowNs(), tag});
    if (options_.rounds > 0) --connection.allowance;
    if (options_.requests > 0) --requests_left_;
    if (options_.rate > 0) next_send_ += 1e9 / options_.rate;
    ++outstanding_;
    ++report_.requests;
  }
  if (!connection.out.empty()) Flush(connection);
}

void Load::Flush(Connection& connection) {
  const ssize_t sent =
      send(connection.fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
  if (sent < 0 && errno != EAGAIN) return;  // reading will tell why
  const bool was_whole = sent == static_cast<ssize_t>(connection.out.size());
  connection.out.erase(0, sent > 0 ? static_cast<std::size_t>(sent) : 0);
  if (!was_whole) Watch(connection, EPOLL_CTL_MOD, true);
}

void Load::Note(const Connection& connection, const Pending& pending, const Answer* answer) {
  --outstanding_;
  HistoryRecord record;
  record.seq = pending.seq;
  record.sent_ns = pending.sent;
  record.received_ns = NowNs();
  record.client = connection.client;
  record.tag = pending.tag;
  record.server = connection.server;
  record.count = options_.form == AnswerForm::kLeaf ? 1 : options_.n;
  if (answer == nullptr) {
    ++report_.unsure;
  } else {
    record.status = static_cast<std::uint16_t>(answer->status);
    ++report_.by_status[answer->status];
    report_.latency_us.push_back(
        static_cast<std::uint32_t>((record.received_ns - pending.sent) / 1000));
  }
  if (answer == nullptr || answer->status != 200) {
    if (answer != nullptr) {
      ++report_.failed;
      ++report_.by_code[answer->code.empty() ? "http_" + std::to_string(answer->status)
                                             : answer->code];
    }
    if (history_ != nullptr) history_->Write(record);
    return;
  }
  ++report_.ok;
  report_.longest_silence_us =
      std::max(report_.longest_silence_us, (record.received_ns - last_ok_) / 1000);
  last_ok_ = record.received_ns;
  for (const Answer::Piece& piece : answer->pieces) {
    record.first = piece.first;
    record.count = piece.count;
    report_.ids += piece.count;
    if (history_ != nullptr) history_->Write(record);
  }
}

/// False: the connection is to be dropped.
bool Load::Digest(Connection& connection) {
  std::size_t used = 0;
  Answer answer;
  while (!connection.pending.empty()) {
    const std::int64_t took =
        ReadAnswer(std::string_view(connection.in).substr(used), options_.form, answer);
    if (took < 0) ++report_.by_code["malformed"];
    if (took < 0) return false;
    if (took == 0) break;
    used += static_cast<std::size_t>(took);
    const Pending pending = connection.pending.front();
    connection.pending.pop_front();
    Note(connection, pending, &answer);
    if (answer.close) return false;
  }
  connection.in.erase(0, used);
  const bool unasked = connection.pending.empty() && !connection.in.empty();
  if (unasked) ++report_.by_code["unasked"];
  return !unasked;
}

void Load::Receive(Connection& connection) {
  std::array<char, 64 * 1024> buffer;
  const ssize_t got = recv(connection.fd, buffer.data(), buffer.size(), 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0) {
    Drop(connection, false);
    return;
  }
  connection.in.append(buffer.data(), static_cast<std::size_t>(got));
  if (!Digest(connection)) {
    Drop(connection, true);
  } else {
    Fill(connection);
  }
}

void Load::StartRound() {
  ++rounds_begun_;
  for (Connection& connection : connections_) connection.allowance = options_.pipeline;
}

void Load::Scan() {
  const std::int64_t timeout = Nanos(options_.timeout_s);
  for (Connection& connection : connections_) {
    if (connection.fd < 0 && connection.retry_at <= now_ && !stopping_) Open(connection);
    if (!connection.pending.empty() && connection.pending.front().sent + timeout < now_)
      Drop(connection, false);
  }
  if (standing_ > 0) last_standing_ = now_;
  if (now_ - last_standing_ > Nanos(options_.give_up_s)) report_.gave_up = true;
}

bool Load::Ended() const {
  if (report_.gave_up) return true;
  if (outstanding_ > 0) return false;
  if (stopping_) return true;
  if (options_.requests > 0 && requests_left_ == 0) return true;
  if (options_.rounds == 0 || !released_ || rounds_begun_ < options_.rounds) return false;
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const Connection& c) { return c.allowance == 0; });
}

void Load::Turn() {
  std::array<epoll_event, 256> events;
  const int wait_ms = options_.rate > 0 ? 1 : 10;
  const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), wait_ms);
  now_ = NowNs();
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    Connection& connection = connections_[event.data.u64];
    if (!connection.standing) {
      Opened(connection);
    } else if ((event.events & EPOLLOUT) != 0) {
      Watch(connection, EPOLL_CTL_MOD, false);
      Flush(connection);
    }
    if (connection.standing && (event.events & ~static_cast<std::uint32_t>(EPOLLOUT)) != 0)
      Receive(connection);
  }
  if (now_ >= next_scan_) {
    next_scan_ = now_ + kScanInterval;
    Scan();
  }
  if (g_stop != 0 || (stop_at_ > 0 && now_ >= stop_at_)) stopping_ = true;
  if (!released_ && (!options_.barrier || standing_ == options_.connections)) {
    released_ = true;
    started_ = last_ok_ = now_ = NowNs();
    next_send_ = static_cast<double>(now_);
    if (options_.duration_s > 0) stop_at_ = now_ + Nanos(options_.duration_s);
  }
  if (released_ && options_.rounds > 0 && outstanding_ == 0 && rounds_begun_ < options_.rounds &&
      std::all_of(connections_.begin(), connections_.end(),
                  [](const Connection& c) { return c.allowance == 0; })) {
    StartRound();
  }
  // The cursor lets a slow rate pass over all connections and not favour the first.
  for (std::size_t i = 0; i < connections_.size(); ++i) {
    Connection& connection = connections_[(cursor_ + i) % connections_.size()];
    if (MaySend(connection)) Fill(connection);
  }
  ++cursor_;
}

LoadReport Load::Run() {
  if (!Prepare()) return std::move(report_);
  now_ = started_ = last_standing_ = NowNs();
  for (Connection& connection : connections_) Open(connection);
  while (!Ended()) Turn();
  report_.seconds = static_cast<double>(NowNs() - started_) / 1e9;
  if (report_.ok > 0 && options_.duration_s > 0) {
    report_.longest_silence_us = std::max(report_.longest_silence_us, (NowNs() - last_ok_) / 1000);
  }
  if (history_ != nullptr && !history_->Close()) report_.error = "the history could not be written";
  return std::move(report_);
}

std::uint32_t Quantile(std::vector<std::uint32_t>& values, double share) {
  if (values.empty()) return 0;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + at, values.end());
  return values[static_cast<std::size_t>(at)];
}

}  // namespace

std::string LoadReport::Json() {
  std::ostringstream out;
  out << "{\"requests\":" << requests << ",\"ok\":" << ok << ",\"failed\":" << failed
      << ",\"unsure\":" << unsure << ",\"ids\":" << ids << ",\"reconnects\":" << reconnects
      << ",\"connect_failures\":" << connect_failures
      << ",\"gave_up\":" << (gave_up ? "true" : "false") << ",\"seconds\":" << seconds
      << ",\"p50_us\":" << Quantile(latency_us, 0.5) << ",\"p99_us\":" << Quantile(latency_us, 0.99)
      << ",\"max_us\":" << Quantile(latency_us, 1)
      << ",\"longest_silence_us\":" << longest_silence_us << ",\"by_status\":{";
  const char* separator = "";
  for (const auto& [status, count] : by_status) {
    out << separator << '"' << status << "\":" << count;
    separator = ",";
  }
  out << "},\"by_code\":{";
  separator = "";
  for (const auto& [code, count] : by_code) {
    out << separator << '"' << code << "\":" << count;
    separator = ",";
  }
  out << "}}\n";
  return out.str();
}

LoadReport RunLoad(const LoadOptions& options) {
  std::signal(SIGINT, OnSignal);
  std::signal(SIGTERM, OnSignal);
  return Load(options).Run();
}

}  // namespace leaf::tools
