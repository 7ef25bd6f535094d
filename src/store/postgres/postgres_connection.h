#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "leaf/result.h"
#include "store/postgres/postgres_settings.h"

struct pg_conn;
struct pg_result;

namespace leaf {

/// One statement with its parameters; every value travels as text and is cast by the statement.
/// nullopt is NULL.
struct PostgresStatement {
  std::string sql;
  std::vector<std::optional<std::string>> params;
  const char* prepared = nullptr;  ///< the name under which Prepare made it ready, if it did
};

/// What became of one transaction.
struct PostgresOutcome {
  enum class Kind : std::uint8_t {
    kDone,     ///< committed, and nothing was said that leaves a doubt
    kRefused,  ///< the server said that it rolled it back, or it was not sent
    kUnknown,  ///< it may be committed, now or later
  };
  /// A row; what it lacks is NULL.
  struct Cells : std::vector<std::optional<std::string>> {
    const std::optional<std::string>& operator[](std::size_t i) const noexcept {
      static const std::optional<std::string> null;
      return i < size() ? data()[i] : null;
    }
  };

  Kind kind = Kind::kUnknown;
  Error error;              ///< unless kDone
  std::string sqlstate;     ///< the server's code, if it gave one
  std::vector<Cells> rows;  ///< of the last statement
  std::uint64_t affected = 0;

  bool done() const noexcept { return kind == Kind::kDone; }
};

/// A session with a PostgreSQL server, or a pooler before it, in which no call outlasts its
/// deadline, whatever the server does. It never reconnects and never cancels: a cancelled wait for
/// a synchronous standby would answer as if it had been successful. A call that takes too long ends
/// by shutting the socket.
///
/// Statements go out in transactions of one round trip, several at once where the caller queues
/// several before it awaits the first (the extended protocol, a Sync after each transaction). No
/// state of the session is relied on, so a pooler may give each to another server connection; but
/// through one the caller queues a transaction only when the last was awaited, and prepares nothing
/// (PostgresFacts).
///
/// A warning that comes with a transaction makes its outcome unknown: the server says "committed
/// here, but perhaps not on the standby" so. Not those of a trigger or a collation, which would
/// come with each.
///
/// Not bounded: the look-up of a host name and the reading of certificate files. Confined to one
/// thread at a time, save Interrupt.
class PostgresConnection {
 public:
  explicit PostgresConnection(Clock& clock);
  ~PostgresConnection();
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;

  /// Connects to `server`, trying its addresses in turn. kUnavailable with the reason. REQUIRES:
  /// !connected().
  Result<void> Connect(const PostgresSettings& settings, const HostPort& server, Instant deadline);
  /// The server process that the other side says it is. A pooler says some number.
  int backend_pid() const noexcept;
  bool connected() const noexcept { return connection_ != nullptr; }
  /// Takes leave of the server, without waiting. Nothing happens if not connected.
  void Close() noexcept;
  /// Any thread. A call under way ends soon; otherwise the next Stale() says true.
  void Interrupt() noexcept;
  /// Whether the connection was ended by the server or by Interrupt meanwhile. Asks nobody.
  bool Stale() noexcept;

  /// Has the server keep `sql` under `name` while the connection lasts, so that it is parsed and
  /// planned once. A pooler would keep it on one of its connections only: REQUIRES none.
  PostgresOutcome Prepare(const char* name, const std::string& sql, Instant deadline);
  /// Queues one transaction. False: it could not be queued and nothing of it will happen; the
  /// connection is not usable any more.
  bool Queue(std::span<const PostgresStatement> statements);
  /// Sends what is queued and waits for the outcome of the oldest transaction that was not awaited
  /// yet. Past its deadline, and after any failure that is not the server's answer, the connection
  /// is shut and all later ones are kUnknown.
  PostgresOutcome Await(Instant deadline);

  /// One transaction, queued and awaited.
  PostgresOutcome Run(std::span<const PostgresStatement> statements, Instant deadline);
  PostgresOutcome Run(PostgresStatement statement, Instant deadline);

 private:
  enum class Wait : std::uint8_t { kReady, kTimeout, kInterrupted, kFailed };
  /// What the server said that is no answer.
  struct Notices {
    std::string warning;    ///< the first since the last transaction that was awaited
    bool farewell = false;  ///< it ends the session
    static void Take(void* self, const pg_result* result);
  };

  bool Send(const PostgresStatement& statement);
  /// Ends the transaction of so many statements.
  bool Sync(std::size_t statements, bool sent);
  Result<void> Attempt(const PostgresSettings& settings, const HostPort& server,
                       const std::string& address, Instant deadline);
  Wait WaitFor(int events, Instant deadline) noexcept;
  /// Until a result can be read without waiting.
  Wait Fill(Instant deadline) noexcept;
  void Take(pg_result* result, PostgresOutcome& outcome);
  /// Shuts the connection. `said`: the server's last words, "" if there were none.
  PostgresOutcome Lost(Wait why, const std::string& said);
  PostgresOutcome NotSent() const;
  std::string Words() const;

  Clock& clock_;
  const int event_fd_;
  pg_conn* connection_ = nullptr;
  Notices notices_;
  std::deque<std::size_t> queued_;  ///< statements of each transaction that was not awaited yet
  std::string lost_;  ///< why the connection was shut while transactions were under way
};

}  // namespace leaf
