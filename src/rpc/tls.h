#pragma once

#include <memory>
#include <string>

#include "leaf/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace leaf::rpc {

/// How a connection is protected.
struct TlsSettings {
  enum class Mode {
    kDisabled,
    kRequired,        ///< encrypted, whoever the server is
    kVerifyCa,        ///< its certificate is signed by an authority we trust
    kVerifyIdentity,  ///< and was made for the host that we connect to
  };
  Mode mode = Mode::kDisabled;
  std::string ca;         ///< PEM file of the authorities trusted; empty: the system's
  std::string cert, key;  ///< PEM files that prove who we are; both or none
};

/// What connections with the same settings share. Thread-safe once made.
class TlsContext {
 public:
  /// Reads the files. kInvalidArgument names the one that cannot be used and why. REQUIRES: mode is
  /// not kDisabled.
  static Result<std::shared_ptr<const TlsContext>> Make(const TlsSettings& settings);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  /// A client's side of one connection to `host` that offers HTTP/2; the caller frees it
  /// (SSL_free). nullptr: out of memory, or `host` is none.
  ssl_st* NewClient(const std::string& host) const;

 private:
  TlsContext(ssl_ctx_st* context, bool verify_host)
      : context_(context), verify_host_(verify_host) {}
  ssl_ctx_st* const context_;
  const bool verify_host_;
};

/// The words for a failed handshake or connection, taken from OpenSSL's queue of errors.
std::string TlsFailure(const ssl_st* ssl);

}  // namespace leaf::rpc
