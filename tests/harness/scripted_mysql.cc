#include "harness/scripted_mysql.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace leaf::harness {
namespace {

constexpr std::uint32_t kCapabilities =
    0x003FA20D;  // MySQL's, protocol 4.1, plugins; no TLS, no compression
constexpr std::uint32_t kClientSsl = 0x800;
constexpr std::string_view kScramble = "abcdefghijklmnopqrst";
constexpr std::string_view kPlugin = "caching_sha2_password";

std::string Int(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

std::string Length(std::uint64_t value) {
  if (value < 251) return Int(value, 1);
  if (value < 65536) return "\xFC" + Int(value, 2);
  return "\xFE" + Int(value, 8);
}

std::string Text(std::string_view text) { return Length(text.size()) + std::string(text); }

std::string Ok(std::uint64_t affected = 0, std::uint64_t insert_id = 0) {
  return Int(0, 1) + Length(affected) + Length(insert_id) + Int(2, 2) + Int(0, 2);
}

std::string Err(unsigned number, std::string_view text) {
  return "\xFF" + Int(number, 2) + "#HY000" + std::string(text);
}

const std::string kEof = std::string("\xFE") + Int(0, 2) + Int(2, 2);

std::string ColumnDefinition() {
  return Text("def") + Text("") + Text("") + Text("") + Text("c") + Text("") + Int(12, 1) +
         Int(45, 2) + Int(1024, 4) + Int(253, 1) + Int(0, 2) + Int(0, 1) + Int(0, 2);
}

using Cells = std::vector<std::optional<std::string>>;

}  // namespace

/// One connection, on its own thread.
class ScriptedMysql::Session {
 public:
  Session(ScriptedMysql& server, int fd) : server_(server), script_(server.script_), fd_(fd) {}

  void Run() {
    if (Login()) {
      while (Serve()) {
      }
    }
    close(fd_);
  }

 private:
  // False: the server is going down, or the client went.
  bool Wait(int fd) {
    std::array<pollfd, 2> fds{{{fd, POLLIN, 0}, {server_.stop_fd_, POLLIN, 0}}};
    while (poll(fds.data(), fds.size(), -1) < 0) {
    }
    return fds[1].revents == 0;
  }
  // Nothing more is said; until the client or the test goes.
  void BeSilent() {
    std::array<char, 4096> bytes;
    while (Wait(fd_) && recv(fd_, bytes.data(), bytes.size(), 0) > 0) {
    }
  }
  bool Pause(Duration pause) {
    pollfd at{server_.stop_fd_, POLLIN, 0};
    return poll(&at, 1,
                static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(pause).count())) == 0;
  }
  /// False: the script ends the connection here.
  bool Pass(Point point) {
    if (script_.silent_at == point || server_.silent_at == point) {
      BeSilent();
      return false;
    }
    return script_.closes_at != point;
  }

  bool Send(const std::string& payload, Duration drip = Duration(0)) {
    const std::string packet = Int(payload.size(), 3) + Int(sequence_++, 1) + payload;
    if (drip == Duration(0))
      return send(fd_, packet.data(), packet.size(), MSG_NOSIGNAL) ==
             static_cast<ssize_t>(packet.size());
    for (const char byte : packet) {
      if (send(fd_, &byte, 1, MSG_NOSIGNAL) != 1 || !Pause(drip)) return false;
    }
    return true;
  }
  bool Read(char* to, std::size_t size) {
    while (size > 0) {
      if (!Wait(fd_)) return false;
      const ssize_t got = recv(fd_, to, size, 0);
      if (got <= 0) return false;
      to += got;
      size -= static_cast<std::size_t>(got);
    }
    return true;
  }
  bool Receive(std::string& payload) {
    std::array<unsigned char, 4> head{};
    if (!Read(reinterpret_cast<char*>(head.data()), head.size())) return false;
    sequence_ = static_cast<std::uint8_t>(head[3] + 1);
    payload.resize(head[0] + 256U * head[1] + 65536U * head[2]);
    return Read(payload.data(), payload.size());
  }
  bool ReceiveLogin(std::string& payload) {
    if (!Receive(payload)) return false;
    MutexLock lock(server_.mu_);
    server_.login_bytes_ += payload;
    return true;
  }

  bool Greet() {
    const std::uint32_t capabilities = kCapabilities | (script_.offers_tls ? kClientSsl : 0);
    std::string greeting =
        Int(10, 1) + script_.version + Int(0, 1) + Int(7, 4) + std::string(kScramble.substr(0, 8)) +
        Int(0, 1) + Int(capabilities & 0xFFFF, 2) + Int(255, 1) + Int(2, 2) +
        Int(capabilities >> 16, 2) + Int(21, 1) + std::string(10, '\0') +
        std::string(kScramble.substr(8)) + Int(0, 1) +
        (script_.names_its_plugin ? std::string(kPlugin) : "mysql_native_password") + Int(0, 1);
    return Send(greeting, script_.drip);
  }
  bool SwitchTo(std::string_view plugin) {
    std::string answer;
    return Send("\xFE" + std::string(plugin) + Int(0, 1) + std::string(kScramble) + Int(0, 1)) &&
           ReceiveLogin(answer);
  }
  bool Login() {
    std::string answer;
    if (!Pass(Point::kGreeting) || !Greet() || !ReceiveLogin(answer) || !Pass(Point::kLogin))
      return false;
    switch (script_.login) {
      case ScriptedMysql::Login::kRefuse:
        Send(Err(1045, "Access denied for user 'leaf'"));
        return false;
      case ScriptedMysql::Login::kOddPlugin:
        SwitchTo("no_such_plugin");
        return false;
      case ScriptedMysql::Login::kClearText:
        SwitchTo("mysql_clear_password");
        return false;
      case ScriptedMysql::Login::kFast:
      case ScriptedMysql::Login::kFull:
        break;
    }
    if (answer.find(kPlugin) == std::string::npos && !SwitchTo(kPlugin)) return false;
    if (script_.login == ScriptedMysql::Login::kFast) return Send("\x01\x03") && Send(Ok());
    return FullLogin();
  }
  bool FullLogin() {
    std::string answer;
    if (!Send("\x01\x04") || !ReceiveLogin(answer) || answer != "\x02") return false;
    if (!Send("\x01" + server_.public_key_) || !ReceiveLogin(answer)) return false;
    std::string password = Decrypt(answer);
    for (std::size_t i = 0; i < password.size(); ++i)
      password[i] = static_cast<char>(password[i] ^ kScramble[i % kScramble.size()]);
    if (password == script_.password + '\0') return Send(Ok());
    Send(Err(1045, "Access denied: wrong password"));
    return false;
  }
  std::string Decrypt(const std::string& secret) {
    const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
        EVP_PKEY_CTX_new(server_.key_.get(), nullptr), EVP_PKEY_CTX_free);
    EVP_PKEY_decrypt_init(context.get());
    EVP_PKEY_CTX_set_rsa_padding(context.get(), RSA_PKCS1_OAEP_PADDING);
    std::string plain(1024, '\0');
    std::size_t size = plain.size();
    const bool ok =
        EVP_PKEY_decrypt(context.get(), reinterpret_cast<unsigned char*>(plain.data()), &size,
                         reinterpret_cast<const unsigned char*>(secret.data()), secret.size()) > 0;
    plain.resize(ok ? size : 0);
    return plain;
  }

  void Note(const std::string& text) {
    MutexLock lock(server_.mu_);
    server_.texts_.push_back(text);
  }
  bool Serve() {
    std::string request;
    sequence_ = 0;
    if (!Receive(request) || request.empty()) return false;
    const std::string rest = request.substr(1);
    switch (static_cast<unsigned char>(request[0])) {
      case 0x01:  // quit
        return false;
      case 0x03:
        return Pass(Point::kProbe) && Query(rest);
      case 0x0E:
        return Send(Ok());
      case 0x16:
        return Pass(Point::kPrepare) && Prepare(rest);
      case 0x17:
        return Execute(rest);
      case 0x19:  // close a statement: no answer
        return true;
      default:
        return Send(Err(1047, "Unknown command"));
    }
  }
  bool Rows(const std::vector<Cells>& rows) {
    bool ok = Send(Length(rows.front().size()));
    for (std::size_t i = 0; i < rows.front().size(); ++i) ok = ok && Send(ColumnDefinition());
    ok = ok && Send(kEof);
    for (const Cells& row : rows) {
      std::string packet;
      for (const auto& cell : row) packet += cell ? Text(*cell) : "\xFB";
      ok = ok && Send(packet);
    }
    return ok && Send(kEof);
  }
  bool Query(const std::string& sql) {
    Note(sql);
    const auto has = [&](std::string_view part) { return sql.find(part) != std::string::npos; };
    if (has("SET NAMES")) return Send(Ok());
    if (has("SHOW GLOBAL VARIABLES")) {
      return Rows({{"server_uuid", "11111111-2222-3333-4444-555555555555"},
                   {"lower_case_table_names", "0"},
                   {"read_only", script_.read_only},
                   {"super_read_only", "OFF"},
                   {"innodb_flush_log_at_trx_commit", script_.flush},
                   {"log_bin", "ON"},
                   {"sync_binlog", script_.sync_binlog}});
    }
    if (has("SHOW GLOBAL STATUS")) return Rows({{"Innodb_redo_log_enabled", "ON"}});
    if (has("GROUP_CONCAT")) return Rows({{script_.engine, script_.max_id_type, "0C"}});
    if (has("CONCAT_WS")) return Rows({{"0C"}});
    if (has("binlog_format")) return Rows({{"binlog_format", "ROW"}});
    if (has("TABLE_TYPE")) return Rows({{"BASE TABLE", script_.engine}});
    if (has("DATA_TYPE")) {
      return Rows({{"biz_tag", "varchar", "varchar(128)", "NO", "utf8mb4_0900_ai_ci"},
                   {"max_id", script_.max_id_type, script_.max_id_type, "NO", std::nullopt},
                   {"step", "int", "int", "NO", std::nullopt},
                   {"update_time", "timestamp", "timestamp", "NO", std::nullopt}});
    }
    if (has("INDEX_NAME")) return Rows({{"PRIMARY", "biz_tag", std::nullopt}});
    return Send(Err(1064, "not in the script"));
  }
  bool Prepare(const std::string& sql) {
    Note(sql);
    params_ = static_cast<std::size_t>(std::count(sql.begin(), sql.end(), '?'));
    const bool selects = sql.starts_with("SELECT");
    bool ok = Send(Int(0, 1) + Int(1, 4) + Int(selects ? 4 : 0, 2) + Int(params_, 2) + Int(0, 1) +
                   Int(0, 2));
    for (std::size_t i = 0; i < params_; ++i) ok = ok && Send(ColumnDefinition());
    if (params_ > 0) ok = ok && Send(kEof);
    for (int i = 0; i < (selects ? 4 : 0); ++i) ok = ok && Send(ColumnDefinition());
    return selects ? ok && Send(kEof) : ok;
  }
  // The first value of a reservation is how many.
  bool Execute(const std::string& request) {
    if (const unsigned error =
            server_.execute_error != 0 ? server_.execute_error.load() : script_.execute_error;
        error != 0 && (server_.execute_errors < 0 || server_.execute_errors-- > 0)) {
      return Send(Err(error, "as the script says"));
    }
    const std::size_t at = 4 + 1 + 4 + (params_ + 7) / 8 + 1 + 2 * params_;
    if (request.size() < at + 8) return Send(Err(1210, "Incorrect arguments"));
    std::int64_t count = 0;
    for (std::size_t i = 0; i < 8; ++i)
      count |= static_cast<std::int64_t>(static_cast<unsigned char>(request[at + i])) << (8 * i);
    const std::int64_t end = server_.max_id_ += count;
    ++server_.executed_;
    return Pass(Point::kExecute) && Send(Ok(1, static_cast<std::uint64_t>(end)));
  }

  ScriptedMysql& server_;
  const Script& script_;
  const int fd_;
  std::uint8_t sequence_ = 0;
  std::size_t params_ = 0;
};

ScriptedMysql::ScriptedMysql(Script script) : script_(std::move(script)), max_id_(script_.max_id) {
  static const std::shared_ptr<EVP_PKEY> key(EVP_RSA_gen(2048), EVP_PKEY_free);
  key_ = key;
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_PUBKEY(bio.get(), key_.get());
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  public_key_.assign(text, static_cast<std::size_t>(size));

  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof at;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&at), length) != 0 || listen(listener_, 16) != 0)
    std::abort();
  getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &length);
  port_ = ntohs(at.sin_port);
  acceptor_ = std::thread([this] { Accept(); });
}

ScriptedMysql::~ScriptedMysql() {
  const std::uint64_t one = 1;
  if (write(stop_fd_, &one, sizeof one) != sizeof one) std::abort();
  acceptor_.join();
  for (std::thread& session : sessions_) session.join();
  close(listener_);
  close(stop_fd_);
}

void ScriptedMysql::Accept() {
  for (;;) {
    std::array<pollfd, 2> fds{{{listener_, POLLIN, 0}, {stop_fd_, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), -1) < 0) continue;
    if (fds[1].revents != 0) return;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    ++connections_;
    sessions_.emplace_back([this, fd] { Session(*this, fd).Run(); });
  }
}

std::vector<std::string> ScriptedMysql::texts() const {
  MutexLock lock(mu_);
  return texts_;
}

std::string ScriptedMysql::login_bytes() const {
  MutexLock lock(mu_);
  return login_bytes_;
}

}  // namespace leaf::harness
