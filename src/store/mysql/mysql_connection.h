#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/time.h"
#include "leaf/result.h"
#include "store/mysql/mysql_settings.h"

struct st_mysql;
struct st_mysql_stmt;

namespace leaf {

class MysqlWaiter;

/// Why a call failed, besides the Error's text.
struct MysqlFailure {
  unsigned number = 0;    ///< the server's or libmariadb's error number; 0 if the failure is ours
  bool definite = false;  ///< the server answered, and what was asked for did not happen
};

/// A session with a MariaDB or MySQL server in which no call outlasts its deadline, whatever the
/// server does. It never reconnects by itself.
///
/// Every wait of libmariadb comes to our poll (MysqlWaiter), in each phase: connecting, greeting,
/// TLS handshake, authentication, sending, reading. What is not bounded: the look-up of a host name
/// (getaddrinfo) and the reading of certificate and plugin files; a name is looked up before the
/// connection is begun.
///
/// Confined to one thread at a time, save Interrupt.
class MysqlConnection {
 public:
  using Cells = std::vector<std::optional<std::string>>;

  explicit MysqlConnection(Clock& clock);
  ~MysqlConnection();
  MysqlConnection(const MysqlConnection&) = delete;
  MysqlConnection& operator=(const MysqlConnection&) = delete;

  /// Connects and authenticates. The password is sent in no clearer form than a hash, unless inside
  /// TLS or encrypted with the server's RSA key, and not at all where the ssl-mode is not
  /// fulfilled. kUnavailable with the reason. REQUIRES: !connected().
  Result<void> Connect(const MysqlSettings& settings, Instant deadline);
  bool connected() const noexcept { return mysql_ != nullptr; }
  /// Takes leave of the server, for a tenth of a second at most; the statements of this connection
  /// fail from now on. Nothing happens if not connected.
  void Close() noexcept;
  /// Ends the connection at once, without a word. Likewise.
  void Cut() noexcept;
  /// Any thread. A call under way ends soon; otherwise the next Stale() says true.
  void Interrupt() noexcept;

  /// Whether the connection was ended by the server or by Interrupt meanwhile. Asks nobody.
  bool Stale() noexcept;
  /// Asks the server for a sign of life.
  Result<void> Ping(Instant deadline);

  /// Runs a statement without a result.
  Result<void> Run(const std::string& sql, Instant deadline);
  /// Runs a statement that changes rows; how many it changed.
  Result<std::uint64_t> Change(const std::string& sql, Instant deadline);
  /// Runs a query; more than `most` rows are an error.
  Result<std::vector<Cells>> Select(const std::string& sql, std::size_t most, Instant deadline);

  bool is_mariadb() const noexcept;
  std::string_view server_version() const noexcept;
  /// "" without TLS.
  std::string tls_cipher() const;

  /// Of the last call that failed.
  const MysqlFailure& failure() const noexcept { return failure_; }

 private:
  friend class MysqlStatement;

  Result<void> Attempt(const MysqlSettings& settings, const std::string& address, Instant deadline);
  void SetOptions(const MysqlSettings& settings);
  std::function<bool(bool)> OnGreeting(MysqlSettings::Tls tls) const;
  /// The Error of the last call of libmariadb; notes failure_.
  Error Failed(std::string_view what, unsigned number, const char* text);
  Error FailedCall(std::string_view what);

  std::unique_ptr<MysqlWaiter> waiter_;
  st_mysql* mysql_ = nullptr;
  std::uint64_t session_ = 0;  ///< counts connections, so that a statement knows its own
  MysqlFailure failure_;
};

/// A row of the table as read; see MysqlStatement::Rows.
struct MysqlRow {
  std::string tag;
  std::optional<std::int64_t> max_id, step;
  std::string updated;
};

/// A prepared statement, prepared when first used and again after a reconnect. Confined like its
/// connection, which must outlive it.
class MysqlStatement {
 public:
  using Param = std::variant<std::int64_t, std::string_view>;
  struct Done {
    std::uint64_t affected = 0, insert_id = 0;
  };

  explicit MysqlStatement(MysqlConnection& connection) : connection_(connection) {}
  ~MysqlStatement();
  MysqlStatement(const MysqlStatement&) = delete;
  MysqlStatement& operator=(const MysqlStatement&) = delete;

  void SetText(std::string sql);
  /// Prepares if that is still to be done. A failure here means that nothing was executed.
  Result<void> Prepare(Instant deadline);

  /// REQUIRES: Prepare succeeded on this connection; as many params as the text has marks.
  Result<Done> Execute(std::span<const Param> params, Instant deadline);
  /// For a text that selects exactly (tag, max_id, step, updated); more than `most` rows are an
  /// error.
  Result<std::vector<MysqlRow>> Rows(std::span<const Param> params, std::size_t most,
                                     Instant deadline);

 private:
  void Drop() noexcept;
  Result<void> Start(std::span<const Param> params);
  Error Failed(std::string_view what);

  MysqlConnection& connection_;
  std::string sql_;
  st_mysql_stmt* stmt_ = nullptr;
  std::uint64_t session_ = 0;  ///< of connection_, when stmt_ was prepared
};

}  // namespace leaf
