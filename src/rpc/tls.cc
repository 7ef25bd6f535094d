#include "rpc/tls.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <array>

namespace leaf::rpc {
namespace {

using Mode = TlsSettings::Mode;

std::string QueuedErrors() {
  std::string text;
  while (const unsigned long code = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(code);
    if (reason == nullptr) continue;
    if (!text.empty()) text += ", ";
    text += reason;
  }
  return text.empty() ? "no reason given" : text;
}

Error BadFile(const char* what, const std::string& path) {
  return {Code::kInvalidArgument,
          std::string(what) + " '" + path + "' cannot be used: " + QueuedErrors()};
}

bool IsAddress(const std::string& host) {
  std::array<unsigned char, 16> bytes{};
  return inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

Result<void> Load(SSL_CTX* context, const TlsSettings& settings) {
  if (!settings.ca.empty()) {
    if (SSL_CTX_load_verify_locations(context, settings.ca.c_str(), nullptr) != 1)
      return BadFile("ssl-ca", settings.ca);
  } else if (SSL_CTX_set_default_verify_paths(context) != 1) {
    return BadFile("the system's folder of authorities", "");
  }
  if (settings.cert.empty()) return {};
  if (SSL_CTX_use_certificate_chain_file(context, settings.cert.c_str()) != 1)
    return BadFile("ssl-cert", settings.cert);
  if (SSL_CTX_use_PrivateKey_file(context, settings.key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context) != 1)
    return BadFile("ssl-key", settings.key);
  return {};
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::Make(const TlsSettings& settings) {
  ERR_clear_error();
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  if (context == nullptr) return Error{Code::kInternal, "OpenSSL: " + QueuedErrors()};
  std::shared_ptr<const TlsContext> made(
      new TlsContext(context, settings.mode == Mode::kVerifyIdentity));
  static constexpr std::array<unsigned char, 3> kHttp2{2, 'h', '2'};
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_alpn_protos(context, kHttp2.data(), kHttp2.size());
  SSL_CTX_set_verify(context, settings.mode >= Mode::kVerifyCa ? SSL_VERIFY_PEER : SSL_VERIFY_NONE,
                     nullptr);
  LEAF_RETURN_IF_ERROR(Load(context, settings));
  return made;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

SSL* TlsContext::NewClient(const std::string& host) const {
  ERR_clear_error();
  SSL* ssl = SSL_new(context_);
  if (ssl == nullptr) return nullptr;
  const bool address = IsAddress(host);
  bool ok = address || SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
  if (verify_host_) {
    X509_VERIFY_PARAM* const param = SSL_get0_param(ssl);
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    ok = ok && (address ? X509_VERIFY_PARAM_set1_ip_asc(param, host.c_str())
                        : X509_VERIFY_PARAM_set1_host(param, host.c_str(), host.size())) == 1;
  }
  SSL_set_connect_state(ssl);
  if (ok) return ssl;
  SSL_free(ssl);
  return nullptr;
}

std::string TlsFailure(const SSL* ssl) {
  const long verdict = SSL_get_verify_result(ssl);
  const bool checked = SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE;
  if (!checked || verdict == X509_V_OK) return "TLS: " + QueuedErrors();
  ERR_clear_error();
  return std::string("TLS: the server's certificate is not trusted: ") +
         X509_verify_cert_error_string(verdict);
}

}  // namespace leaf::rpc
