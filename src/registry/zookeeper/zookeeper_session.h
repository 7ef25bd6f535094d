#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "leaf/result.h"

struct _zhandle;

namespace leaf {

/// What became of a call.
enum class ZkCode : std::uint8_t {
  kOk,
  kNoNode,
  kExists,
  kBadVersion,
  kRefused,  ///< by the server or the client, nothing was done
  kUnknown,  ///< no answer: it may have happened, or happen yet
};

/// What a node says of itself.
struct ZkStat {
  std::int32_t version = 0;   ///< writes since it was made
  std::int64_t mtime_ms = 0;  ///< of the last write, by the server's clock
  std::int64_t made = 0;      ///< children that were ever made below it
};

struct ZkReply {
  ZkCode code = ZkCode::kUnknown;
  std::string why;                 ///< for people, unless kOk
  std::string text;                ///< the data read, or the path made
  std::vector<std::string> names;  ///< of children, without path
  ZkStat stat;
  bool ok() const noexcept { return code == ZkCode::kOk; }
};

/// One session with ZooKeeper: each call waits for its answer until its deadline and no longer. The
/// handle of the C library is thrown away after a call that had no answer and after the session
/// expired; `Connect` then makes a new one. Confined to one thread at a time, save Interrupt.
class ZkSession {
 public:
  struct Options {
    std::string servers;         ///< "H1:2181,H2:2181"
    std::string chroot;          ///< put before each path: "" or "/path"
    std::string user, password;  ///< digest authentication; no user: none
    bool private_nodes = false;  ///< nodes made are the user's alone
  };
  explicit ZkSession(Options options);
  ~ZkSession();
  ZkSession(const ZkSession&) = delete;
  ZkSession& operator=(const ZkSession&) = delete;

  /// Makes a session unless there is a usable one, authenticates, and looks whether the chroot is
  /// there. kUnavailable otherwise.
  Result<void> Connect(Instant deadline);
  bool usable() const noexcept;
  void Close() noexcept;
  /// Ends the call under way, as if its deadline had come. Any thread.
  void Interrupt() noexcept;
  /// An interruption that came before concerns no call from here on.
  void BeginCall() noexcept;

  ZkReply Get(const std::string& path, Instant deadline);
  /// All at once; the answers in the order of the paths.
  std::vector<ZkReply> GetAll(const std::vector<std::string>& paths, Instant deadline);
  ZkReply Children(const std::string& path, Instant deadline);
  /// Persistent; `sequential`: the server appends a number of ten digits. Yields path and stat.
  ZkReply Create(const std::string& path, std::string_view data, bool sequential, Instant deadline);
  /// Only if the node has that version.
  ZkReply Set(const std::string& path, std::string_view data, std::int32_t version,
              Instant deadline);
  ZkReply Delete(const std::string& path, std::int32_t version, Instant deadline);
  /// The server's clock (stat.mtime_ms): one transaction makes, writes and deletes the ephemeral
  /// node `path`, so that nobody ever sees it. What this session reads afterwards is not older.
  ZkReply Clock(const std::string& path, Instant deadline);

  /// "zookeeper SERVERS: WHAT PATH: why" and what to do.
  Error Explain(const ZkReply& reply, std::string_view what, const std::string& path) const;

 private:
  struct Shared;
  struct Call;
  using CallPtr = std::shared_ptr<Call>;

  CallPtr NewCall() const;
  Result<void> Authenticate(Instant deadline);
  Result<void> AwaitConnected(Instant deadline);
  Result<void> Failed(std::string why);
  CallPtr StartGet(const std::string& path);
  ZkReply Await(const CallPtr& call, Instant deadline);
  std::string Full(const std::string& path) const;

  const Options options_;
  const std::shared_ptr<Shared> shared_;
  _zhandle* handle_ = nullptr;
  bool doubt_ = false;  ///< a call had no answer
};

}  // namespace leaf
