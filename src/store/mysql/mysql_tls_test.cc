// Encryption: which servers are spoken to under which ssl-mode. The certificates are made here.

#include <cstdlib>
#include <fstream>

#include "store/mysql/mysql_testing.h"

namespace leaf {
namespace {

using testing::HasSubstr;

/// A folder of keys and certificates, made by the openssl program.
class Certificates {
 public:
  explicit Certificates(std::string folder) : folder_(std::move(folder)) {
    MakeAuthority("ca");
    MakeAuthority("other");
    Make("good", "ca", "DNS:localhost,IP:127.0.0.1");
    Make("by-name", "ca", "DNS:localhost");
    Make("wrong", "ca", "DNS:db.example.com");
    Make("foreign", "other", "DNS:localhost,IP:127.0.0.1");
    Make("expired", "ca", "DNS:localhost,IP:127.0.0.1",
         "-startdate 20200101000000Z -enddate 20210101000000Z");
    Run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "
        "self.key -out self.pem -days 30 -subj "
        "/CN=localhost -addext "
        "subjectAltName=DNS:localhost,IP:127.0.0.1");
  }
  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  /// The server's, from the next FLUSH SSL on.
  void Use(const std::string& name) {
    Run("cp " + name + ".pem server.pem && cp " + name + ".key server.key");
  }

 private:
  void Run(const std::string& command) {
    const std::string all = "cd " + folder_ + " && ( " + command + " ) >>openssl.log 2>&1";
    EXPECT_EQ(std::system(all.c_str()), 0) << command;
  }
  void MakeAuthority(const std::string& name) {
    Run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " +
        name + ".key -out " + name + ".pem -days 30 -subj /CN=authority-" + name + " && mkdir " +
        name + ".issued && : >" + name + ".index && echo 01 >" + name + ".serial");
  }
  // `openssl ca` is the one command of Debian 12's openssl that takes dates in the past.
  void Make(const std::string& name, const std::string& authority, const std::string& names,
            const std::string& dates = "") {
    std::ofstream config(Path(name + ".cnf"));
    config << "[ca]\ndefault_ca=a\n[a]\ndatabase=" << authority << ".index\nserial=" << authority
           << ".serial\nnew_certs_dir=" << authority
           << ".issued\nunique_subject=no\ndefault_md=sha256\ndefault_days=30\npolicy=p\nx509_"
              "extensions=x\n[p]\ncommonName=supplied\n"
           << "[x]\nsubjectAltName=" << names << "\n";
    config.close();
    Run("openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout " + name +
        ".key -out " + name + ".csr -subj /CN=" + name + " && openssl ca -batch -notext -config " +
        name + ".cnf -cert " + authority + ".pem -keyfile " + authority + ".key -in " + name +
        ".csr -out " + name + ".pem " + dates);
  }

  const std::string folder_;
};

class MysqlTlsTest : public MysqlTest {
 protected:
  static Certificates& Certs() {
    static Certificates certificates(Server().folder());
    return certificates;
  }

  static void SetUpTestSuite() {
    Certs().Use("good");
    const auto path = [](const char* name) { return Certs().Path(name); };
    Server().Restart({"--ssl-ca=" + path("ca.pem"), "--ssl-cert=" + path("server.pem"),
                      "--ssl-key=" + path("server.key")});
    Server().Exec(
        "CREATE OR REPLACE USER tls@'%' IDENTIFIED BY 'p' REQUIRE SSL; CREATE OR REPLACE USER "
        "x509@'%' IDENTIFIED BY 'p' REQUIRE X509; "
        "GRANT SELECT, UPDATE ON leaf.* TO tls@'%'; GRANT SELECT, UPDATE ON leaf.* TO x509@'%'");
  }

  static void Serve(const std::string& certificate) {
    Certs().Use(certificate);
    Server().Exec("FLUSH SSL");
  }
  /// "" if it connects.
  static std::string Try(const std::string& mode, const std::string& host = "localhost",
                         const std::string& ca = "ca") {
    StoreOptions options = Options();
    options.user = "tls";
    options.password = "p";
    options.host = host;
    options.parameters.clear();
    if (!mode.empty()) options.parameters["ssl-mode"] = mode;
    if (!ca.empty()) options.parameters["ssl-ca"] = Certs().Path(ca + ".pem");
    const Result<StoreInfo> info = Make(options)->Open(In(kPatience));
    return info.ok() ? "" : info.error().message;
  }
};

TEST_F(MysqlTlsTest, SpeaksTlsWhereItIsOffered) {
  Serve("self");
  EXPECT_EQ(Try("preferred", "127.0.0.1", ""), "");
  EXPECT_EQ(Try("required", "127.0.0.1", ""), "");
  EXPECT_EQ(Try("", "127.0.0.1", ""), "");
  EXPECT_THAT(Try("disabled", "127.0.0.1", ""), HasSubstr("Access denied"))
      << "this user may not come without";
}

TEST_F(MysqlTlsTest, AGoodCertificateIsTakenInEveryMode) {
  Serve("good");
  for (const char* host : {"localhost", "127.0.0.1"}) {
    EXPECT_EQ(Try("verify-ca", host), "");
    EXPECT_EQ(Try("verify-identity", host), "");
    EXPECT_EQ(Try("", host), "");
  }
}

TEST_F(MysqlTlsTest, TheNameIsVerifiedUnderVerifyIdentityAndByDefault) {
  Serve("wrong");
  EXPECT_EQ(Try("verify-ca"), "");
  EXPECT_THAT(Try("verify-identity"), HasSubstr("certificate"));
  EXPECT_THAT(Try(""), HasSubstr("certificate"));
  Serve("by-name");
  EXPECT_EQ(Try("verify-identity", "localhost"), "");
  EXPECT_THAT(Try("verify-identity", "127.0.0.1"), HasSubstr("certificate"));
}

TEST_F(MysqlTlsTest, ACertificateOfAnotherAuthorityIsRefused) {
  for (const char* certificate : {"foreign", "self", "expired"}) {
    SCOPED_TRACE(certificate);
    Serve(certificate);
    EXPECT_THAT(Try("verify-ca"), HasSubstr("certificate"));
    EXPECT_THAT(Try("verify-identity"), HasSubstr("certificate"));
  }
  Serve("expired");
  EXPECT_THAT(Try("verify-identity"), HasSubstr("expired"));
  Serve("good");
  EXPECT_THAT(Try("verify-ca", "localhost", ""), HasSubstr("certificate"))
      << "no authority of the system's";
  EXPECT_THAT(Try("verify-identity", "localhost", ""), HasSubstr("certificate"));
}

TEST_F(MysqlTlsTest, AMissingAuthorityFileIsAnError) {
  Serve("good");
  EXPECT_NE(Try("verify-ca", "localhost", "no-such-file"), "");
}

TEST_F(MysqlTlsTest, ShowsItsOwnCertificate) {
  Serve("good");
  StoreOptions options = Options();
  options.user = "x509";
  options.password = "p";
  options.parameters = {{"ssl-ca", Certs().Path("ca.pem")}};
  EXPECT_THAT(Refusal(options), HasSubstr("Access denied"));
  options.parameters["ssl-cert"] = Certs().Path("by-name.pem");
  options.parameters["ssl-key"] = Certs().Path("by-name.key");
  EXPECT_TRUE(Make(options)->Open(In(kPatience)).ok());
}

TEST_F(MysqlTlsTest, ReservesAndEndsByItsDeadlineInsideTls) {
  Serve("good");
  Put("order", 1, 10);
  StoreOptions options = Options();
  options.parameters = {{"ssl-ca", Certs().Path("ca.pem")}};
  const auto driver = Open(options);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{1 + 10 * i, 11 + 10 * i}));
  Server().Freeze();
  const Instant before = SystemClock().Now();
  const Grant grant = Reserve(*driver, "order", 10, std::chrono::milliseconds(1000));
  EXPECT_LT(SystemClock().Now() - before, std::chrono::milliseconds(1200));
  EXPECT_NE(grant.outcome, Outcome::kGranted);
  EXPECT_FALSE(driver->connected());
  Server().Thaw();
  Server().Exec("SET GLOBAL wait_timeout = 1");
  const auto idle = Open(options);
  ASSERT_TRUE(Eventually([] {
    return Server().root().Value(
               "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE USER = 'leaf'") == "0";
  }));
  EXPECT_EQ(Reserve(*idle, "order", 10).outcome, Outcome::kRefused)
      << "an idle kill is seen through TLS as well";
  EXPECT_EQ(ReserveWithReopen(*idle, "order", 10).outcome, Outcome::kGranted);
}

TEST_F(MysqlTlsTest, IsNotTalkedOutOfTls) {
  Server().Restart({"--skip-ssl"});
  for (const char* mode : {"required", "verify-ca", "verify-identity"}) {
    StoreOptions options = Options();
    options.parameters = {{"ssl-mode", mode}};
    if (std::string(mode) != "required") options.parameters["ssl-ca"] = Certs().Path("ca.pem");
    EXPECT_THAT(Refusal(options), HasSubstr("TLS")) << mode;
  }
  StoreOptions options = Options();
  options.parameters = {{"ssl-mode", "preferred"}};
  EXPECT_TRUE(Make(options)->Open(In(kPatience)).ok());
  Server().Exec("SET GLOBAL wait_timeout = DEFAULT");
}

}  // namespace
}  // namespace leaf
