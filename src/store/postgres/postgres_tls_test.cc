// Encryption: which servers are spoken to under which sslmode. The certificates are made here.

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store/postgres/postgres_testing.h"
#include "tests/harness/certificates.h"
#include "tests/harness/tcp_relay.h"

namespace leaf {
namespace {

using std::chrono::milliseconds;
using testing::AllOf;
using testing::HasSubstr;

class PostgresTlsTest : public PostgresTest {
 protected:
  static harness::Certificates& Certs() {
    static harness::Certificates certificates(Server().folder());
    return certificates;
  }

  static void SetUpTestSuite() {
    // The user tls may not come without TLS, the user x509 not without a certificate.
    const std::string hba = Server().folder() + "/data/pg_hba.conf";
    std::ofstream(hba) << "local all all trust\nhostssl all x509 all scram-sha-256 "
                          "clientcert=verify-ca\nhostssl all tls all scram-sha-256\nhost all leaf "
                          "all scram-sha-256\n";
    Server().Exec(
        "CREATE ROLE tls LOGIN PASSWORD 'p' IN ROLE leaf; CREATE ROLE x509 LOGIN PASSWORD 'p' IN "
        "ROLE leaf");
    Server().Set("ssl_ca_file", Certs().Pem("ca"));
    Serve("good");
  }

  /// The server shows this certificate from now on; "" for no TLS.
  static void Serve(const std::string& certificate) {
    if (!certificate.empty()) {
      const std::string key = Server().folder() + "/server.key";
      using std::filesystem::copy_options;
      std::filesystem::copy_file(Certs().Pem(certificate), Server().folder() + "/server.pem",
                                 copy_options::overwrite_existing);
      std::filesystem::copy_file(Certs().Key(certificate), key, copy_options::overwrite_existing);
      // The server reads no key that others may read.
      std::filesystem::permissions(
          key, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
      if (geteuid() == 0) {
        EXPECT_EQ(chown(key.c_str(), getpwnam("postgres")->pw_uid, 0), 0);
      }
      Server().Exec("ALTER SYSTEM SET ssl_cert_file = '" + Server().folder() + "/server.pem'");
      Server().Exec("ALTER SYSTEM SET ssl_key_file = '" + key + "'");
    }
    const std::string before = Server().root().Value("SELECT clock_timestamp()");
    Server().Set("ssl", certificate.empty() ? "off" : "on");
    // The postmaster takes it up at its leisure, and sessions that begin then have it.
    const std::string reloaded = "SELECT pg_conf_load_time() > '" + before + "'";
    ASSERT_TRUE(Eventually([&] { return Server().Connect()->Value(reloaded) == "t"; }));
  }
  static StoreOptions With(const std::string& mode, const std::string& host = "localhost",
                           const std::string& ca = "ca") {
    StoreOptions options = Options();
    options.user = "tls";
    options.password = "p";
    options.servers = host + ":" + std::to_string(Server().port());
    options.parameters.clear();
    if (!mode.empty()) options.parameters["sslmode"] = mode;
    if (!ca.empty()) options.parameters["sslrootcert"] = Certs().Pem(ca);
    return options;
  }
  /// "" if it connects.
  static std::string Try(const StoreOptions& options) {
    const Result<StoreInfo> info = Make(options)->Open(In(kPatience));
    return info.ok() ? "" : info.error().message;
  }
  static std::string Try(const std::string& mode, const std::string& host = "localhost",
                         const std::string& ca = "ca") {
    return Try(With(mode, host, ca));
  }
};

TEST_F(PostgresTlsTest, SpeaksTlsWhereItIsOfferedAndVerifiesNothingUnlessTold) {
  Serve("self");
  for (const char* mode : {"prefer", "require", ""}) EXPECT_EQ(Try(mode, "127.0.0.1", ""), "");
  EXPECT_THAT(Try("disable", "127.0.0.1", ""), HasSubstr("no encryption"))
      << "this user may not come without";
}

TEST_F(PostgresTlsTest, AGoodCertificateIsTakenInEveryMode) {
  Serve("good");
  for (const char* host : {"localhost", "127.0.0.1"}) {
    EXPECT_EQ(Try("verify-ca", host), "");
    EXPECT_EQ(Try("verify-full", host), "");
    EXPECT_EQ(Try("", host), "") << "verify-full, since there is an authority";
  }
}

TEST_F(PostgresTlsTest, TheNameIsVerifiedUnderVerifyFullAndByDefault) {
  Serve("wrong");
  EXPECT_EQ(Try("verify-ca"), "");
  for (const char* mode : {"verify-full", ""})
    EXPECT_THAT(Try(mode), HasSubstr("does not match host name \"localhost\""));
  Serve("by-name");
  EXPECT_EQ(Try("verify-full", "localhost"), "");
  EXPECT_THAT(Try("verify-full", "127.0.0.1"), HasSubstr("does not match host name"));
}

TEST_F(PostgresTlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  for (const char* certificate : {"foreign", "self", "expired"}) {
    SCOPED_TRACE(certificate);
    Serve(certificate);
    for (const char* mode : {"verify-ca", "verify-full", ""})
      EXPECT_THAT(Try(mode), HasSubstr("certificate verify failed"));
  }
}

TEST_F(PostgresTlsTest, AMissingFileIsAnError) {
  Serve("good");
  EXPECT_THAT(Try("verify-ca", "localhost", "no-such-file"), HasSubstr("no-such-file"));
  StoreOptions options = With("");
  options.parameters["sslcert"] = Certs().Pem("no-such-file");
  options.parameters["sslkey"] = Certs().Key("no-such-file");
  EXPECT_THAT(Try(options), HasSubstr("no-such-file"));
}

TEST_F(PostgresTlsTest, ShowsItsOwnCertificate) {
  Serve("good");
  StoreOptions options = With("");
  options.user = "x509";
  EXPECT_THAT(Try(options), HasSubstr("valid client certificate"));
  const auto show = [&](const std::string& name) {
    options.parameters["sslcert"] = Certs().Pem(name);
    options.parameters["sslkey"] = Certs().Key(name);
    std::filesystem::permissions(Certs().Key(name), std::filesystem::perms::owner_read);
    return Try(options);
  };
  EXPECT_EQ(show("by-name"), "");
  EXPECT_NE(show("foreign"), "") << "not of an authority that the server knows";
}

TEST_F(PostgresTlsTest, IsNotTalkedOutOfTls) {
  Serve("");
  for (const char* mode : {"require", "verify-ca", "verify-full"}) {
    StoreOptions options = With(mode, "localhost", std::string(mode) == "require" ? "" : "ca");
    options.user = "leaf";
    options.password = "secret";
    EXPECT_THAT(Try(options), HasSubstr("does not support SSL")) << mode;
    options.parameters = {{"sslmode", "prefer"}};
    EXPECT_EQ(Try(options), "");
  }
}

TEST_F(PostgresTlsTest, ASocketTakesNoTls) {
  Serve("good");
  StoreOptions options = Options();
  options.servers = Server().folder();
  options.port = Server().port();
  options.parameters = {{"sslmode", "verify-full"}, {"sslrootcert", Certs().Pem("ca")}};
  EXPECT_EQ(Try(options), "");
}

TEST_F(PostgresTlsTest, ReservesAndEndsByItsDeadlineInsideTls) {
  Serve("good");
  Put("order", 1, 10);
  harness::TcpRelay relay(Server().port());
  StoreOptions options = With("");
  options.servers = "localhost:" + std::to_string(relay.port());
  const auto driver = Open(options);
  EXPECT_EQ(
      Server().root().Value("SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING "
                            "(pid) WHERE a.usename = 'tls' AND s.ssl"),
      "1");
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1 + 10 * i, 11 + 10 * i}));
  const auto hold = relay.Hold();
  Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 10, milliseconds(300));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(600));
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  before = SystemClock().Now();
  EXPECT_THAT(Refusal(options, milliseconds(300)), HasSubstr("no answer in time"));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(600));
}

TEST_F(PostgresTlsTest, AHandshakeThatDripsEndsByTheDeadline) {
  Serve("good");
  harness::TcpRelay relay(Server().port());
  relay.Drip(milliseconds(5));
  StoreOptions options = With("");
  options.servers = "localhost:" + std::to_string(relay.port());
  const Instant before = SystemClock().Now();
  EXPECT_THAT(Refusal(options, milliseconds(300)), HasSubstr("no answer in time"));
  EXPECT_LT(SystemClock().Now() - before, milliseconds(600));
}

TEST_F(PostgresTlsTest, AnIdleKillIsSeenThroughTlsAsWell) {
  Serve("good");
  Put("order", 1, 10);
  const auto driver = Open(With(""));
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().Exec(
      "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = 'tls'");
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_EQ(ReserveWithReopen(*driver, "order", 10).range, (Range{11, 21}));
}

}  // namespace
}  // namespace leaf
