// libpq stays in pipeline mode from the first statement to the last, so there is one way to send
// and one to read. A transaction ends with its Sync: what comes between CommandComplete and the
// result of the Sync (a warning, an error) still belongs to it, because the server commits in
// between.

#include "store/postgres/postgres_connection.h"

#include <libpq-fe.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <utility>

#include "base/assert.h"
#include "store/postgres/postgres_errors.h"

namespace leaf {
namespace {

using Kind = PostgresOutcome::Kind;

Error Unavailable(std::string message) { return Error{Code::kUnavailable, std::move(message)}; }

int Milliseconds(Duration left) {
  using std::chrono::ceil, std::chrono::milliseconds;
  return static_cast<int>(std::clamp<std::int64_t>(ceil<milliseconds>(left).count(), 0, 3'600'000));
}

// libpq's messages end in newlines and may have several lines.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c != '\n' && c != '\t') {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::string Field(const PGresult* result, int code) {
  const char* text = PQresultErrorField(result, code);
  return text == nullptr ? std::string() : std::string(text);
}

std::string Sentence(const PGresult* result) {
  std::string text = Field(result, PG_DIAG_MESSAGE_PRIMARY);
  if (text.empty()) text = PQresultErrorMessage(result);
  if (const std::string detail = Field(result, PG_DIAG_MESSAGE_DETAIL); !detail.empty())
    text += " (" + detail + ")";
  if (const std::string state = Field(result, PG_DIAG_SQLSTATE); !state.empty())
    text += " [" + state + "]";
  return OneLine(text);
}

// Whether a warning is of a statement and not of the commit: a trigger's RAISE, a collation of
// which the system has another version now. (libpq does not tell which came after the last
// statement.)
bool IsOfStatement(const PGresult* warning) {
  const std::string function = Field(warning, PG_DIAG_SOURCE_FUNCTION);
  return function == "exec_stmt_raise" || function == "pg_newlocale_from_collation" ||
         function == "create_pg_locale";
}

}  // namespace

void PostgresConnection::Notices::Take(void* self, const PGresult* result) {
  auto& notices = *static_cast<Notices*>(self);
  const std::string severity = Field(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  if (severity == "WARNING" && notices.warning.empty() && !IsOfStatement(result))
    notices.warning = Sentence(result);
  if (severity == "FATAL" || severity == "PANIC") notices.farewell = true;
}

PostgresConnection::PostgresConnection(Clock& clock)
    : clock_(clock), event_fd_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {}

PostgresConnection::~PostgresConnection() {
  Close();
  if (event_fd_ >= 0) close(event_fd_);
}

Result<void> PostgresConnection::Connect(const PostgresSettings& settings, const HostPort& server,
                                         Instant deadline) {
  LEAF_ASSERT(connection_ == nullptr);
  lost_.clear();
  std::uint64_t interrupts = 0;
  [[maybe_unused]] const auto taken = read(event_fd_, &interrupts, sizeof interrupts);
  if (server.host.starts_with('/')) return Attempt(settings, server, "", deadline);
  LEAF_ASSIGN_OR_RETURN(const std::vector<std::string> addresses,
                        LookUpHost(server.host, server.port));
  Result<void> last;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const Instant now = clock_.Now();
    const Duration share = (deadline - now) / static_cast<std::int64_t>(addresses.size() - i);
    last = Attempt(settings, server, addresses[i], now + share);
    if (last.ok()) break;
  }
  return last;
}

Result<void> PostgresConnection::Attempt(const PostgresSettings& settings, const HostPort& server,
                                         const std::string& address, Instant deadline) {
  const std::string port = std::to_string(server.port);
  // The host is what a certificate must name, hostaddr is where to connect: libpq looks nothing up.
  const char* const names[] = {"host",
                               "hostaddr",
                               "port",
                               "dbname",
                               "user",
                               "password",
                               "sslmode",
                               "sslrootcert",
                               "sslcert",
                               "sslkey",
                               "application_name",
                               "client_encoding",
                               "gssencmode",
                               nullptr};
  const bool tcp = !address.empty();
  const char* const values[] = {server.host.c_str(),
                                address.c_str(),
                                port.c_str(),
                                settings.database.c_str(),
                                settings.user.c_str(),
                                settings.password.c_str(),
                                tcp ? settings.sslmode.c_str() : "disable",
                                settings.sslrootcert.c_str(),
                                settings.sslcert.c_str(),
                                settings.sslkey.c_str(),
                                "leafd",
                                "UTF8",
                                "disable",
                                nullptr};
  const auto failed = [&](std::string why) {
    Close();
    return Unavailable("cannot connect to " + (tcp ? ToString(server) : server.host) + ": " + why);
  };
  // libpq goes without a certificate that is not there, and the server's refusal would not say why.
  if (tcp && !settings.sslcert.empty() && access(settings.sslcert.c_str(), R_OK) != 0)
    return failed("cannot read sslcert " + settings.sslcert);
  connection_ = PQconnectStartParams(names, values, 0);
  if (connection_ == nullptr) return Unavailable("out of memory");
  if (PQstatus(connection_) == CONNECTION_BAD) return failed(Words());
  PQsetNoticeReceiver(connection_, Notices::Take, &notices_);
  PostgresPollingStatusType polling = PGRES_POLLING_WRITING;
  while (polling != PGRES_POLLING_OK) {
    const Wait wait = WaitFor(polling == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline);
    if (wait == Wait::kTimeout) return failed("no answer in time");
    if (wait == Wait::kInterrupted) return failed("interrupted");
    if (wait == Wait::kFailed) return failed("the socket failed");
    polling = PQconnectPoll(connection_);
    if (polling == PGRES_POLLING_FAILED) return failed(Words());
  }
  if (PQsetnonblocking(connection_, 1) != 0 || PQenterPipelineMode(connection_) != 1)
    return failed(Words());
  notices_ = {};  // of logging in; not of a transaction
  return {};
}

void PostgresConnection::Close() noexcept {
  if (connection_ != nullptr) PQfinish(std::exchange(connection_, nullptr));
  queued_.clear();
  notices_ = {};
}

int PostgresConnection::backend_pid() const noexcept {
  return connection_ == nullptr ? 0 : PQbackendPID(connection_);
}

void PostgresConnection::Interrupt() noexcept {
  const std::uint64_t one = 1;
  // It can only fail when the counter is full, and then it is set already.
  [[maybe_unused]] const auto written = write(event_fd_, &one, sizeof one);
}

PostgresConnection::Wait PostgresConnection::WaitFor(int events, Instant deadline) noexcept {
  for (;;) {
    const Instant now = clock_.Now();
    if (now >= deadline) return Wait::kTimeout;
    std::array<pollfd, 2> fds{
        {{PQsocket(connection_), static_cast<short>(events), 0}, {event_fd_, POLLIN, 0}}};
    if (fds[0].fd < 0) return Wait::kFailed;
    const int ready = poll(fds.data(), fds.size(), Milliseconds(deadline - now));
    if (ready < 0 && errno != EINTR) return Wait::kFailed;
    if (ready <= 0) continue;
    if (fds[1].revents != 0) return Wait::kInterrupted;
    return Wait::kReady;
  }
}

bool PostgresConnection::Stale() noexcept {
  if (connection_ == nullptr) return true;
  for (;;) {
    // A reload may have something to say, which is not the answer to anything. What counts is the
    // end of the connection, and the server's word that it is about to end it.
    PQisBusy(connection_);  // takes the messages that came
    if (std::exchange(notices_, {}).farewell || PQstatus(connection_) != CONNECTION_OK) return true;
    std::array<pollfd, 2> fds{{{PQsocket(connection_), POLLIN, 0}, {event_fd_, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), 0) <= 0) return false;
    if (fds[1].revents != 0) return true;
    if (PQconsumeInput(connection_) != 1) return true;
  }
}

bool PostgresConnection::Send(const PostgresStatement& statement) {
  std::vector<const char*> values;
  values.reserve(statement.params.size());
  for (const auto& param : statement.params) values.push_back(param ? param->c_str() : nullptr);
  const int count = static_cast<int>(values.size());
  if (statement.prepared != nullptr) {
    return PQsendQueryPrepared(connection_, statement.prepared, count, values.data(), nullptr,
                               nullptr, 0) == 1;
  }
  return PQsendQueryParams(connection_, statement.sql.c_str(), count, nullptr, values.data(),
                           nullptr, nullptr, 0) == 1;
}

bool PostgresConnection::Sync(std::size_t statements, bool sent) {
  if (sent && PQpipelineSync(connection_) == 1) {
    queued_.push_back(statements);
    return true;
  }
  lost_ = Words();
  Close();
  return false;
}

bool PostgresConnection::Queue(std::span<const PostgresStatement> statements) {
  if (connection_ == nullptr) return false;
  return Sync(statements.size(),
              std::all_of(statements.begin(), statements.end(),
                          [this](const PostgresStatement& each) { return Send(each); }));
}

PostgresConnection::Wait PostgresConnection::Fill(Instant deadline) noexcept {
  for (;;) {
    const int unsent = PQflush(connection_);
    if (unsent < 0) return Wait::kFailed;
    if (PQisBusy(connection_) == 0) return Wait::kReady;
    const Wait wait = WaitFor(unsent == 0 ? POLLIN : POLLIN | POLLOUT, deadline);
    if (wait != Wait::kReady) return wait;
    if (PQconsumeInput(connection_) != 1) return Wait::kFailed;
  }
}

PostgresOutcome PostgresConnection::Await(Instant deadline) {
  PostgresOutcome outcome;
  if (connection_ == nullptr) {
    outcome.error = Unavailable(lost_.empty() ? "not connected" : lost_);
    return outcome;
  }
  LEAF_ASSERT(!queued_.empty());
  const std::size_t statements = queued_.front();
  queued_.pop_front();
  std::size_t results = 0;
  outcome.kind = Kind::kDone;
  for (;;) {
    const Wait wait = Fill(deadline);
    if (wait != Wait::kReady) return Lost(wait, outcome.error.message);
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(PQgetResult(connection_), PQclear);
    if (result == nullptr) {  // the end of one statement
      if (PQstatus(connection_) != CONNECTION_OK) return Lost(Wait::kFailed, outcome.error.message);
      continue;
    }
    if (PQresultStatus(result.get()) == PGRES_PIPELINE_SYNC) break;
    ++results;
    Take(result.get(), outcome);
    if (PQstatus(connection_) != CONNECTION_OK) return Lost(Wait::kFailed, outcome.error.message);
  }
  if (outcome.done() && results != statements)
    return Lost(Wait::kFailed, "the answer is none to what was asked");
  if (const std::string warning = std::exchange(notices_, {}).warning; !warning.empty()) {
    outcome.kind = Kind::kUnknown;
    outcome.error = Unavailable("the server warned: " + warning);
  }
  return outcome;
}

void PostgresConnection::Take(PGresult* result, PostgresOutcome& outcome) {
  switch (PQresultStatus(result)) {
    case PGRES_TUPLES_OK:
    case PGRES_COMMAND_OK:
      break;
    case PGRES_PIPELINE_ABORTED:
      return;  // the error came before
    default:
      outcome.sqlstate = Field(result, PG_DIAG_SQLSTATE);
      outcome.error = Unavailable(Sentence(result));
      outcome.kind = IsDefinite(outcome.sqlstate, Field(result, PG_DIAG_SEVERITY_NONLOCALIZED))
                         ? Kind::kRefused
                         : Kind::kUnknown;
      return;
  }
  outcome.rows.clear();
  const int rows = PQntuples(result), columns = PQnfields(result);
  for (int row = 0; row < rows; ++row) {
    PostgresOutcome::Cells& cells = outcome.rows.emplace_back();
    for (int column = 0; column < columns; ++column) {
      if (PQgetisnull(result, row, column) != 0) {
        cells.emplace_back();
      } else {
        cells.emplace_back(std::string(PQgetvalue(result, row, column),
                                       static_cast<std::size_t>(PQgetlength(result, row, column))));
      }
    }
  }
  const std::string_view count = PQcmdTuples(result);
  outcome.affected = 0;
  std::from_chars(count.data(), count.data() + count.size(), outcome.affected);
}

PostgresOutcome PostgresConnection::Lost(Wait why, const std::string& said) {
  lost_ = !said.empty()               ? said
          : why == Wait::kTimeout     ? "no answer in time"
          : why == Wait::kInterrupted ? "interrupted"
                                      : "the connection was lost: " + Words();
  Close();
  PostgresOutcome outcome;
  outcome.error = Unavailable(lost_);
  return outcome;
}

std::string PostgresConnection::Words() const {
  return OneLine(connection_ == nullptr ? "" : PQerrorMessage(connection_));
}

PostgresOutcome PostgresConnection::NotSent() const {
  PostgresOutcome outcome;
  outcome.kind = Kind::kRefused;
  outcome.error = Unavailable(lost_.empty() ? "not connected" : lost_);
  return outcome;
}

PostgresOutcome PostgresConnection::Prepare(const char* name, const std::string& sql,
                                            Instant deadline) {
  if (connection_ == nullptr) return NotSent();
  const bool sent = PQsendPrepare(connection_, name, sql.c_str(), 0, nullptr) == 1;
  return Sync(1, sent) ? Await(deadline) : NotSent();
}

PostgresOutcome PostgresConnection::Run(std::span<const PostgresStatement> statements,
                                        Instant deadline) {
  return Queue(statements) ? Await(deadline) : NotSent();
}

PostgresOutcome PostgresConnection::Run(PostgresStatement statement, Instant deadline) {
  return Run(std::span(&statement, 1), deadline);
}

}  // namespace leaf
