#include "store/mysql/mysql_connection.h"

#include <errmsg.h>
#include <mysql.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "base/assert.h"
#include "base/host_lookup.h"
#include "store/mysql/mysql_errors.h"
#include "store/mysql/mysql_waiter.h"

namespace leaf {
namespace {

using Tls = MysqlSettings::Tls;

constexpr Duration kGoodbye = std::chrono::milliseconds(100);
constexpr unsigned long kMaxPacket = 16UL << 20;
// Not mysql_clear_password (the password would travel as it is, on a server's mere word) and not
// dialog (it would ask at a terminal).
constexpr const char* kPlugins =
    "mysql_native_password,caching_sha2_password,sha256_password,client_ed25519";
constexpr const char* kAuthorities = "/etc/ssl/certs";

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

std::string Where(const MysqlSettings& settings) {
  return settings.unix_socket.empty() ? settings.host + ":" + std::to_string(settings.port)
                                      : settings.unix_socket;
}

}  // namespace

MysqlConnection::MysqlConnection(Clock& clock) : waiter_(std::make_unique<MysqlWaiter>(clock)) {
  static std::once_flag once;
  std::call_once(once, [] { mysql_library_init(0, nullptr, nullptr); });
}

MysqlConnection::~MysqlConnection() { Close(); }

Result<void> MysqlConnection::Connect(const MysqlSettings& settings, Instant deadline) {
  LEAF_ASSERT(mysql_ == nullptr);
  failure_ = {};
  waiter_->TakeInterrupt();
  if (!settings.unix_socket.empty()) return Attempt(settings, "", deadline);
  // libmariadb would look the name up itself, but would repeat a temporary failure for half a
  // minute.
  LEAF_ASSIGN_OR_RETURN(std::vector<std::string> addresses,
                        LookUpHost(settings.host, settings.port));
  // The name that the certificate must have is the one given to libmariadb, which then tries all
  // addresses.
  if (settings.tls == Tls::kVerifyIdentity) addresses = {settings.host};
  Result<void> last;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Instant now = waiter_->Now();
    const Duration share = (deadline - now) / static_cast<std::int64_t>(addresses.size() - i);
    last = Attempt(settings, addresses[i], now + share);
    if (last.ok() || IsServerError(failure_.number) ||
        waiter_->end() == MysqlWaiter::End::kInterrupted)
      break;
  }
  return last;
}

Result<void> MysqlConnection::Attempt(const MysqlSettings& settings, const std::string& address,
                                      Instant deadline) {
  mysql_ = mysql_init(nullptr);
  if (mysql_ == nullptr) return Unavailable("out of memory");
  ++session_;
  SetOptions(settings);
  const bool tcp = settings.unix_socket.empty();
  MYSQL* done = nullptr;
  {
    const MysqlWaiter::Scope scope(*waiter_, deadline);
    if (tcp) waiter_->ExpectConnect(OnGreeting(settings.tls));
    done =
        mysql_real_connect(mysql_, tcp ? address.c_str() : nullptr, settings.user.c_str(),
                           settings.password.c_str(), nullptr, static_cast<unsigned>(settings.port),
                           tcp ? nullptr : settings.unix_socket.c_str(), 0);
  }
  if (done == nullptr) {
    Error error = FailedCall("cannot connect to " + Where(settings));
    Cut();
    return error;
  }
  waiter_->Connected(static_cast<int>(mysql_get_socket(mysql_)));
  if (settings.tls >= Tls::kRequired && mysql_get_ssl_cipher(mysql_) == nullptr) {
    Cut();
    return Unavailable("cannot connect to " + Where(settings) +
                       ": the server uses no TLS, but ssl-mode demands it");
  }
  return {};
}

// libmariadb's "enforce" means no more than "if it is offered". Without an offer it would send the
// hash of the password in the open, where TLS was demanded; and its caching_sha2_password takes the
// wish for TLS for TLS, and would send the password itself. So the offer is looked at first.
std::function<bool(bool)> MysqlConnection::OnGreeting(Tls tls) const {
  if (tls == Tls::kDisabled) return nullptr;
  return [tls, mysql = mysql_](bool offers_tls) {
    if (offers_tls) return true;
    const my_bool off = 0;
    mysql_options(mysql, MYSQL_OPT_SSL_ENFORCE, &off);
    return tls == Tls::kPreferred;
  };
}

void MysqlConnection::SetOptions(const MysqlSettings& settings) {
  const my_bool on = 1;
  const unsigned off = 0;
  const unsigned protocol =
      settings.unix_socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  mysql_options(mysql_, MARIADB_OPT_IO_WAIT, reinterpret_cast<const void*>(&MysqlWaiter::Hook));
  mysql_options(mysql_, MYSQL_OPT_PROTOCOL, &protocol);
  mysql_options(mysql_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options(mysql_, MYSQL_OPT_LOCAL_INFILE, &off);  // or a server could ask for our files
  mysql_options(mysql_, MARIADB_OPT_RESTRICTED_AUTH, kPlugins);
  mysql_options(mysql_, MYSQL_OPT_MAX_ALLOWED_PACKET, &kMaxPacket);
  mysql_optionsv(mysql_, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", "leafd");
  if (!settings.plugin_dir.empty())
    mysql_options(mysql_, MYSQL_PLUGIN_DIR, settings.plugin_dir.c_str());
  if (!settings.server_public_key.empty())
    mysql_options(mysql_, MYSQL_SERVER_PUBLIC_KEY, settings.server_public_key.c_str());
  if (settings.tls == Tls::kDisabled) return;

  mysql_options(mysql_, MYSQL_OPT_SSL_ENFORCE, &on);
  if (settings.tls == Tls::kVerifyIdentity)
    mysql_options(mysql_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
  if (!settings.ca.empty()) {
    mysql_options(mysql_, MYSQL_OPT_SSL_CA, settings.ca.c_str());
  } else if (settings.tls >= Tls::kVerifyCa) {
    mysql_options(mysql_, MYSQL_OPT_SSL_CAPATH, kAuthorities);
  }
  if (!settings.cert.empty()) mysql_options(mysql_, MYSQL_OPT_SSL_CERT, settings.cert.c_str());
  if (!settings.key.empty()) mysql_options(mysql_, MYSQL_OPT_SSL_KEY, settings.key.c_str());
}

void MysqlConnection::Close() noexcept {
  if (mysql_ == nullptr) return;
  const MysqlWaiter::Scope scope(*waiter_, waiter_->Now() + kGoodbye);
  mysql_close(std::exchange(mysql_, nullptr));
}

void MysqlConnection::Cut() noexcept {
  if (mysql_ == nullptr) return;
  shutdown(static_cast<int>(mysql_get_socket(mysql_)), SHUT_RDWR);
  const MysqlWaiter::Scope scope(*waiter_, Instant::min());
  mysql_close(std::exchange(mysql_, nullptr));
}

void MysqlConnection::Interrupt() noexcept { waiter_->Interrupt(); }

bool MysqlConnection::Stale() noexcept {
  if (waiter_->TakeInterrupt() || mysql_ == nullptr) return true;
  // A server speaks only when spoken to: anything to read is its farewell.
  pollfd at{static_cast<int>(mysql_get_socket(mysql_)), POLLIN | POLLRDHUP, 0};
  return poll(&at, 1, 0) != 0;
}

Result<void> MysqlConnection::Ping(Instant deadline) {
  LEAF_ASSERT(mysql_ != nullptr);
  int failed = 0;
  {
    const MysqlWaiter::Scope scope(*waiter_, deadline);
    failed = mysql_ping(mysql_);
  }
  if (failed != 0) return FailedCall("the connection is gone");
  return {};
}

Result<void> MysqlConnection::Run(const std::string& sql, Instant deadline) {
  LEAF_ASSERT(mysql_ != nullptr);
  int failed = 0;
  {
    const MysqlWaiter::Scope scope(*waiter_, deadline);
    failed = mysql_real_query(mysql_, sql.data(), sql.size());
  }
  if (failed != 0) return FailedCall("session set-up");
  return {};
}

Result<std::uint64_t> MysqlConnection::Change(const std::string& sql, Instant deadline) {
  LEAF_ASSERT(mysql_ != nullptr);
  int failed = 0;
  {
    const MysqlWaiter::Scope scope(*waiter_, deadline);
    failed = mysql_real_query(mysql_, sql.data(), sql.size());
  }
  if (failed != 0) return FailedCall("a change");
  return mysql_affected_rows(mysql_);
}

Result<std::vector<MysqlConnection::Cells>> MysqlConnection::Select(const std::string& sql,
                                                                    std::size_t most,
                                                                    Instant deadline) {
  LEAF_ASSERT(mysql_ != nullptr);
  std::vector<Cells> rows;
  bool failed = true, too_many = false;
  {
    const MysqlWaiter::Scope scope(*waiter_, deadline);
    MYSQL_RES* result =
        mysql_real_query(mysql_, sql.data(), sql.size()) == 0 ? mysql_use_result(mysql_) : nullptr;
    if (result != nullptr) {
      const unsigned columns = mysql_num_fields(result);
      while (MYSQL_ROW row = mysql_fetch_row(result)) {
        if (rows.size() == most) {
          too_many = true;
          break;
        }
        const unsigned long* lengths = mysql_fetch_lengths(result);
        Cells& cells = rows.emplace_back(columns);
        for (unsigned i = 0; i < columns; ++i) {
          if (row[i] != nullptr) cells[i].emplace(row[i], lengths[i]);
        }
      }
      failed = mysql_errno(mysql_) != 0;
      mysql_free_result(result);
    }
  }
  if (failed) return FailedCall("a query about the server");
  if (too_many) {
    Cut();
    return Unavailable("the server sent more rows than were asked for");
  }
  return rows;
}

bool MysqlConnection::is_mariadb() const noexcept {
  return mysql_ != nullptr && mariadb_connection(mysql_) != 0;
}

std::string_view MysqlConnection::server_version() const noexcept {
  const char* version = mysql_ == nullptr ? nullptr : mysql_get_server_info(mysql_);
  return version == nullptr ? "" : version;
}

std::string MysqlConnection::tls_cipher() const {
  const char* cipher = mysql_ == nullptr ? nullptr : mysql_get_ssl_cipher(mysql_);
  return cipher == nullptr ? "" : cipher;
}

Error MysqlConnection::FailedCall(std::string_view what) {
  return Failed(what, mysql_errno(mysql_), mysql_error(mysql_));
}

// Unless the server itself answered, the session is in doubt and ends here.
Error MysqlConnection::Failed(std::string_view what, unsigned number, const char* text) {
  failure_ = {number, IsDefinite(number)};
  std::string message(what);
  switch (waiter_->end()) {
    case MysqlWaiter::End::kTimeout:
      message += ": no answer in time";
      break;
    case MysqlWaiter::End::kInterrupted:
      message += ": cut off while waiting for an answer";
      break;
    case MysqlWaiter::End::kNoTls:
      message += ": the server offers no TLS, but ssl-mode demands it";
      break;
    case MysqlWaiter::End::kNone:
      message += std::string(": ") + text + " (" + std::to_string(number) + ")";
      break;
  }
  if (waiter_->end() != MysqlWaiter::End::kNone) failure_ = {};
  // The loss of the connection that follows hides the number of this one.
  const bool no_plugin =
      std::string_view(text).find("could not be loaded") != std::string_view::npos;
  const std::string_view advice = Advice(no_plugin ? CR_AUTH_PLUGIN_CANNOT_LOAD : failure_.number);
  if (!advice.empty()) message += "; " + std::string(advice);
  if (!failure_.definite) Cut();
  return Unavailable(std::move(message));
}

}  // namespace leaf
