#include "config/config_jdbc.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "config/config_keys.h"

namespace leaf {
namespace {

using url::Invalid;

/// Parameters that only matter to Java, to a pool or to result sets: dropped without a word.
/// Lower-case, each between blanks.
constexpr std::string_view kHarmless =
    " allowmultiqueries allowpublickeyretrieval alwayssendsetisolation autoreconnect"
    " autoreconnectforpools cachecallablestmts cacheprepstmts cacheresultsetmetadata"
    " cacheserverconfiguration characterencoding charactersetresults connectioncollation"
    " connectiontimezone defaultfetchsize elidesetautocommits enablequerytimeouts failoverreadonly"
    " forceconnectiontimezonetosession generatesimpleparametermetadata initialtimeout"
    " jdbccomplianttruncation logger logslowqueries maintaintimestats maxreconnects"
    " nullcatalogmeanscurrent nullnamepatternmatchesall prepstmtcachesize prepstmtcachesqllimit"
    " profilesql retriesalldown rewritebatchedstatements servertimezone tcpkeepalive tcpnodelay"
    " tinyint1isbit useaffectedrows usecompression useconfigs usecursorfetch useinformationschema"
    " usejdbccomplianttimezoneshift uselegacydatetimecode uselocalsessionstate"
    " useoldaliasmetadatabehavior useserverprepstmts usetimezone useunicode yearisdatetype"
    " zerodatetimebehavior ";
constexpr std::array<std::string_view, 2> kTimeouts = {"connecttimeout", "sockettimeout"};
constexpr std::array<std::string_view, 11> kJavaKeyStores = {"trustcertificatekeystoreurl",
                                                             "trustcertificatekeystoretype",
                                                             "trustcertificatekeystorepassword",
                                                             "clientcertificatekeystoreurl",
                                                             "clientcertificatekeystoretype",
                                                             "clientcertificatekeystorepassword",
                                                             "truststore",
                                                             "truststorepassword",
                                                             "keystore",
                                                             "keystorepassword",
                                                             "fallbacktosystemtruststore"};
constexpr std::array<std::string_view, 9> kKnown = {"user",
                                                    "password",
                                                    "useSSL",
                                                    "requireSSL",
                                                    "verifyServerCertificate",
                                                    "sslMode",
                                                    "trustServerCertificate",
                                                    "serverSslCert",
                                                    "useUnicode"};

template <std::size_t kSize>
bool Contains(const std::array<std::string_view, kSize>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

/// What the URL says on TLS, in the words of both drivers.
struct Tls {
  std::optional<bool> use, require, verify, trust;
  std::string mode;         ///< lower-case, '_' as '-'
  std::string certificate;  ///< serverSslCert: a PEM file
  bool java_store = false;
};

class JdbcReader {
 public:
  explicit JdbcReader(bool mariadb) : mariadb_(mariadb) { url_.kind = "mysql"; }

  Result<StoreUrl> Read(std::string_view rest, bool replication);

 private:
  Result<void> ReadHosts(std::string_view authority, bool replication);
  Result<void> ReadParameters(std::string_view query);
  Result<void> ReadParameter(const std::string& name, const std::string& value);
  Result<bool> ReadTls(const std::string& name, const std::string& value);
  Result<void> ReadFlag(std::string_view name, const std::string& value,
                        std::optional<bool>& target);
  void WarnOnce(std::string text);
  void NoteUnused(const std::string& name);
  Result<std::string> TlsMode();

  const bool mariadb_;
  StoreUrl url_;
  Tls tls_;
  bool several_hosts_ = false;
};

void JdbcReader::WarnOnce(std::string text) {
  auto& list = url_.warnings;
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

Result<void> JdbcReader::ReadHosts(std::string_view authority, bool replication) {
  if (authority.find(',') != std::string_view::npos &&
      authority.find('@') != authority.rfind('@')) {
    return Invalid(
        "a user for each of several hosts is not supported; name the one host that holds the row");
  }
  LEAF_RETURN_IF_ERROR(url::TakeUserInfo(authority, url_));
  if (authority.find('(') != std::string_view::npos) {
    return Invalid("the JDBC form address=(host=...) is not supported; write HOST:PORT");
  }
  const std::string_view first = authority.substr(0, authority.find(','));
  several_hosts_ = first.size() != authority.size();
  if (several_hosts_) {
    WarnOnce(std::string("several hosts: only the first is used, which ") +
             (replication ? "holds the writable row" : "the driver writes to") +
             "; leafd does not fail over by itself, because ids from another copy of the row could "
             "repeat");
  }
  if (first.empty()) {
    url_.host = "localhost";
    return {};
  }
  return url::ReadHost(first, url_);
}

Result<void> JdbcReader::ReadFlag(std::string_view name, const std::string& value,
                                  std::optional<bool>& target) {
  const std::string word = Lower(value);
  if (word == "true" || word == "yes" || word == "1") {
    target = true;
  } else if (word == "false" || word == "no" || word == "0") {
    target = false;
  } else {
    return Invalid("the JDBC parameter " + std::string(name) + " needs true or false");
  }
  return {};
}

/// True: the parameter is about TLS and was taken.
Result<bool> JdbcReader::ReadTls(const std::string& name, const std::string& value) {
  for (const auto& [known, target] : {std::pair{"usessl", &tls_.use},
                                      {"requiressl", &tls_.require},
                                      {"verifyservercertificate", &tls_.verify},
                                      {"trustservercertificate", &tls_.trust}}) {
    if (name != known) continue;
    LEAF_RETURN_IF_ERROR(ReadFlag(known, value, *target));
    return true;
  }
  if (name == "sslmode") {
    tls_.mode = Lower(value);
    std::replace(tls_.mode.begin(), tls_.mode.end(), '_', '-');
    return true;
  }
  if (name == "serversslcert") {
    tls_.certificate = value;
    return true;
  }
  if (name == "serverrsapublickeyfile") {
    url_.parameters["server-public-key"] = value;
    return true;
  }
  if (Contains(kJavaKeyStores, name)) {
    tls_.java_store = true;
    return true;
  }
  return false;
}

void JdbcReader::NoteUnused(const std::string& name) {
  const std::string lower = Lower(name);
  if (kHarmless.find(" " + lower + " ") != std::string_view::npos) return;
  if (Contains(kTimeouts, lower)) {
    WarnOnce("the JDBC parameter " + name + " is not used; store.timeout bounds each call");
    return;
  }
  const std::vector<std::string> known(kKnown.begin(), kKnown.end());
  WarnOnce("the JDBC parameter " + url::PrintableName(name) + " is unknown and not used" +
           config::SuggestionText(name, known));
}

Result<void> JdbcReader::ReadParameter(const std::string& name, const std::string& value) {
  const std::string lower = Lower(name);
  LEAF_ASSIGN_OR_RETURN(const bool tls, ReadTls(lower, value));
  if (tls) return {};
  if (lower == "user") {
    url_.user = value;
  } else if (lower == "password" || lower == "password1") {
    url_.password = value;
  } else if (lower == "sessionvariables") {
    WarnOnce(
        "the JDBC parameter sessionVariables is not used; leafd sets what its statements need");
  } else {
    if (lower == "failoverreadonly" && several_hosts_ && Lower(value) == "false") {
      return Invalid(
          "failOverReadOnly=false lets the driver take ids from another host's copy of the row; "
          "name the one host that holds the row");
    }
    NoteUnused(name);
  }
  return {};
}

Result<void> JdbcReader::ReadParameters(std::string_view query) {
  while (!query.empty()) {
    std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    if (pair.starts_with("amp;")) {
      WarnOnce("the JDBC URL has &amp; where & is meant; read as &");
      pair.remove_prefix(4);
    }
    if (pair.empty()) continue;
    const auto equals = pair.find('=');
    const auto name = PercentDecode(pair.substr(0, equals));
    const auto value =
        PercentDecode(equals == std::string_view::npos ? "" : pair.substr(equals + 1));
    if (!name || !value)
      return Invalid("the JDBC URL has a bad escape in its parameters (% must be %25)");
    // Of what has an '@', only these are parameters; the rest is the tail of a password.
    const std::string lower = Lower(*name);
    const bool may_have_at = lower == "user" || lower == "password1" || lower.ends_with("password");
    if (!may_have_at) LEAF_RETURN_IF_ERROR(url::RefuseAt(pair));
    LEAF_RETURN_IF_ERROR(ReadParameter(*name, *value));
  }
  return {};
}

Result<std::string> JdbcReader::TlsMode() {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kModes = {
      {{"disabled", "disabled"},
       {"disable", "disabled"},
       {"preferred", "preferred"},
       {"required", "required"},
       {"trust", "required"},
       {"verify-ca", "verify-ca"},
       {"verify-identity", "verify-identity"},
       {"verify-full", "verify-identity"},
       {"prefer", "preferred"}}};
  if (!tls_.mode.empty()) {
    for (const auto& [theirs, ours] : kModes) {
      if (tls_.mode == theirs) return std::string(ours);
    }
    return Invalid("the JDBC parameter sslMode has an unknown value");
  }
  if (tls_.use == false) return std::string("disabled");
  if (tls_.trust == true) return std::string("required");
  if (!tls_.certificate.empty() || (mariadb_ && tls_.use == true))
    return std::string("verify-identity");
  if (tls_.use == true && !tls_.verify) {
    WarnOnce(
        "useSSL=true verifies the server's certificate, as Connector/J 5.1 does "
        "(ssl-mode=verify-ca); "
        "add verifyServerCertificate=false to encrypt without");
    return std::string("verify-ca");
  }
  if (tls_.verify == true) return std::string("verify-ca");
  return std::string(tls_.require == true ? "required" : "preferred");
}

Result<StoreUrl> JdbcReader::Read(std::string_view rest, bool replication) {
  if (!rest.starts_with("//"))
    return Invalid("the JDBC URL must be jdbc:mysql://HOST:PORT/DATABASE");
  const url::Parts parts = url::Split(rest.substr(2));
  // With the user before the host, no parameter holds a password.
  if (parts.authority.find('@') != std::string_view::npos) {
    LEAF_RETURN_IF_ERROR(url::RefuseAt(parts.query));
  }
  LEAF_RETURN_IF_ERROR(ReadHosts(parts.authority, replication));
  LEAF_RETURN_IF_ERROR(url::ReadDatabase(parts.path, url_));
  LEAF_RETURN_IF_ERROR(ReadParameters(parts.query));
  LEAF_ASSIGN_OR_RETURN(const std::string mode, TlsMode());
  url_.parameters["ssl-mode"] = mode;
  if (!tls_.certificate.empty() && mode.starts_with("verify"))
    url_.parameters["ssl-ca"] = tls_.certificate;
  if (tls_.java_store && mode != "disabled") {
    WarnOnce(
        "Java key stores cannot be read: verification uses the system's certificates; export the "
        "CA as PEM and "
        "set LEAFD_STORE_URL=mysql://...?ssl-ca=FILE");
  }
  LEAF_RETURN_IF_ERROR(url::CheckTls(url_));
  return std::move(url_);
}

}  // namespace

Result<StoreUrl> ParseJdbcUrl(std::string_view text) {
  std::string_view rest = text.substr(std::string_view("jdbc:").size());
  const std::string_view driver = rest.substr(0, rest.find(':'));
  if (driver == "postgresql") {
    rest.remove_prefix(std::min(rest.size(), driver.size() + 1));
    return url::ParsePostgres(rest, true);
  }
  if (driver != "mysql" && driver != "mariadb") {
    return Invalid(
        "store.url: of JDBC, only jdbc:mysql:, jdbc:mariadb: and jdbc:postgresql: are known");
  }
  rest.remove_prefix(std::min(rest.size(), driver.size() + 1));
  const std::string_view mode = rest.substr(0, std::min(rest.find(':'), rest.find('/')));
  const bool replication = mode == "replication";
  if (!mode.empty() && !replication && mode != "sequential" && mode != "failover") {
    return Invalid(
        "store.url: this JDBC mode spreads statements over several hosts; "
        "name the one host that holds the row: jdbc:mysql://HOST:PORT/DATABASE");
  }
  if (!mode.empty()) rest.remove_prefix(std::min(rest.size(), mode.size() + 1));
  return JdbcReader(driver == "mariadb").Read(rest, replication);
}

}  // namespace leaf
