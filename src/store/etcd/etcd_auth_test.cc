// Users and their rights, on a real member whose tokens end soon.

#include "store/etcd/etcd_testing.h"

namespace leaf {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

/// A member with authentication: root:top may do everything, leaf:secret may use the keys, reader
/// may only read them, stranger nothing.
class Guarded {
 public:
  Guarded() : folder_("etcd-jwt"), server_({.arguments = {Tokens()}}) {
    for (const auto& [user, password] : kUsers)
      server_.Ctl({"user", "add", std::string(user) + ":" + password});
    server_.Ctl({"user", "grant-role", "root", "root"});
    for (const char* role : {"writes", "reads"}) server_.Ctl({"role", "add", role});
    server_.Ctl({"role", "grant-permission", "writes", "readwrite", "--prefix", kKeys});
    server_.Ctl({"role", "grant-permission", "reads", "read", "--prefix", kKeys});
    server_.Ctl({"user", "grant-role", "leaf", "writes"});
    server_.Ctl({"user", "grant-role", "reader", "reads"});
    server_.Put(kKeys + std::string("order"), EtcdValue{1, 10}.Text());
    server_.Ctl({"auth", "enable"});
  }
  harness::Etcd& server() noexcept { return server_; }

 private:
  static constexpr const char* kKeys = "/leafd/leaf_alloc/";
  static constexpr std::pair<const char*, const char*> kUsers[] = {
      {"root", "top"}, {"leaf", "secret"}, {"reader", "secret"}, {"stranger", "secret"}};

  std::string Tokens() {
    const std::string key = folder_.path() + "/jwt.key", pub = folder_.path() + "/jwt.pub";
    const std::string log = folder_.path() + "/log";
    harness::RunOrGiveUp({"openssl", "genrsa", "-out", key, "2048"}, log);
    harness::RunOrGiveUp({"openssl", "rsa", "-in", key, "-pubout", "-out", pub}, log);
    return "--auth-token=jwt,pub-key=" + pub + ",priv-key=" + key + ",sign-method=RS256,ttl=1s";
  }

  harness::TestFolder folder_;
  harness::Etcd server_;
};

class EtcdAuthTest : public EtcdTest {
 protected:
  static harness::Etcd& Server() {
    static Guarded guarded;
    return guarded.server();
  }
  static StoreOptions As(const std::string& user, const std::string& password = "secret") {
    StoreOptions options = Server().options();
    options.user = user;
    options.password = password;
    return options;
  }
};

TEST_F(EtcdAuthTest, ReadingAndWritingTheKeysIsEnough) {
  const auto driver = Make(As("leaf"));
  const auto info = driver->Open(In(kPatience));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_THAT(info->warnings, Contains(HasSubstr("in the open"))) << "there is no TLS";
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  EXPECT_TRUE(driver->Create("new", 10, 1, In(kPatience)).ok());
  EXPECT_TRUE(driver->List("", 10, In(kPatience)).ok());
  EXPECT_TRUE(driver->Delete("new", In(kPatience)).ok());
}

TEST_F(EtcdAuthTest, AWrongPasswordAndAnUnknownUserAreTold) {
  EXPECT_THAT(Refusal(As("leaf", "wrong")),
              AllOf(HasSubstr("'leaf'"), HasSubstr("authentication")));
  EXPECT_THAT(Refusal(As("nobody")), AllOf(HasSubstr("'nobody'"), HasSubstr("authentication")));
  EXPECT_THAT(Refusal(As("", "")), HasSubstr("demands a user"));
}

TEST_F(EtcdAuthTest, AUserWhoMayNotWriteIsToldHowToMendIt) {
  for (const char* user : {"reader", "stranger"}) {
    EXPECT_THAT(Refusal(As(user)), AllOf(HasSubstr("permission denied"),
                                         HasSubstr("grant-permission ROLE readwrite --prefix"),
                                         HasSubstr("/leafd/leaf_alloc/")));
  }
}

TEST_F(EtcdAuthTest, AnotherTableIsAnothersMatter) {
  StoreOptions options = As("leaf");
  options.table = "other";
  EXPECT_THAT(Refusal(options), HasSubstr("permission denied"));
}

TEST_F(EtcdAuthTest, ATokenThatEndedIsRenewedWithoutACost) {
  const auto driver = Open(As("leaf"));
  Grant grant = Reserve(*driver, "order", 10);
  ASSERT_EQ(grant.outcome, Outcome::kGranted) << Describe(grant);
  const Instant ended = In(std::chrono::milliseconds(2100));  // tokens count whole seconds
  std::int64_t end = grant.range.last;
  while (SystemClock().Now() < ended) std::this_thread::sleep_for(ended - SystemClock().Now());
  for (int i = 0; i < 2; ++i) {
    grant = Reserve(*driver, "order", 10);
    ASSERT_EQ(grant.outcome, Outcome::kGranted) << Describe(grant);
    EXPECT_EQ(grant.range.first, end) << "nothing was burnt";
    end = grant.range.last;
    EXPECT_TRUE(driver->connected());
  }
}

TEST_F(EtcdAuthTest, RightsTakenAwayAreNoticedAndRestored) {
  const auto driver = Open(As("leaf"));
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  Server().Ctl({"--user=root:top", "user", "revoke-role", "leaf", "writes"});
  const Grant denied = Reserve(*driver, "order", 10);
  EXPECT_EQ(denied.outcome, Outcome::kRefused) << Describe(denied);
  EXPECT_THAT(denied.error.message, HasSubstr("permission denied"));
  Server().Ctl({"--user=root:top", "user", "grant-role", "leaf", "writes"});
  Grant grant;
  EXPECT_TRUE(Eventually([&] {
    grant = ReserveWithReopen(*driver, "order", 10, kPatience);
    return grant.outcome == Outcome::kGranted;
  })) << Describe(grant);
}

TEST_F(EtcdAuthTest, AuthenticationThatIsOffIsTold) {
  harness::Etcd open;
  StoreOptions options = open.options();
  options.user = "leaf";
  options.password = "secret";
  const auto info = Make(options)->Open(In(kPatience));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_THAT(info->warnings, Contains(HasSubstr("switched off")));
}

}  // namespace
}  // namespace leaf
