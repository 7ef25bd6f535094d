// Answers that a real member gives only on a bad day, from a scripted one.

#include <etcd.pb.h>

#include <map>

#include "base/mutex.h"
#include "rpc/http2_server_testing.h"
#include "store/etcd/etcd_testing.h"

namespace leaf {
namespace {

using rpc::ServedAnswer;
using rpc::ServedRequest;
using testing::HasSubstr;

/// A member that has one row and says of everything else what a test wants. Its clients' threads
/// and the test's share it.
class Member {
 public:
  Member()
      : server_({.script = [this](const ServedRequest& request) { return Answer(request); }}) {}

  StoreOptions options() const {
    StoreOptions options;
    options.kind = "etcd";
    options.servers = "127.0.0.1:" + std::to_string(server_.port());
    options.path = "/leafd";
    return options;
  }
  /// For the calls of that name from now on; without it they go well.
  void Say(const std::string& call, std::optional<ServedAnswer> answer) {
    const MutexLock lock(mu_);
    if (answer) {
      said_[call] = *answer;
    } else {
      said_.erase(call);
    }
  }
  void Silence(bool on) { server_.Silence(on); }
  template <typename F>
  void Change(F change) {
    const MutexLock lock(mu_);
    change(*this);
  }
  int calls(const std::string& call) {
    const MutexLock lock(mu_);
    return calls_[call];
  }

  // Guarded by mu_, as all is.
  std::uint64_t cluster_id = 0xabc;
  std::uint64_t leader = 1;
  bool is_learner = false;
  int voters = 3, learners = 0;
  std::vector<std::string> errors;
  EtcdValue row{1, 10};
  bool contended = false;  ///< somebody else is always faster

 private:
  template <typename Response>
  ServedAnswer Reply(Response& response) {
    response.mutable_header()->set_cluster_id(cluster_id);
    response.mutable_header()->set_revision(revision_);
    return ServedAnswer::Ok(response.SerializeAsString());
  }
  ServedAnswer Answer(const ServedRequest& request) {
    const MutexLock lock(mu_);
    const std::string path = request.headers.at(":path");
    std::string call = path.substr(path.rfind('/') + 1);
    etcdpb::TxnRequest txn;
    if (call == "Txn" && txn.ParseFromString(request.body.substr(5)) &&
        txn.compare(0).target() == etcdpb::Compare::VERSION)
      call = "Probe";
    ++calls_[call];
    if (const auto said = said_.find(call); said != said_.end()) return said->second;
    if (call == "Status") return Status();
    if (call == "MemberList") return Members();
    if (call == "Range") return Range();
    return call == "Probe" ? Probe() : Txn(txn);
  }
  ServedAnswer Status() {
    etcdpb::StatusResponse status;
    status.set_leader(leader);
    status.set_is_learner(is_learner);
    for (const std::string& error : errors) status.add_errors(error);
    return Reply(status);
  }
  ServedAnswer Members() {
    etcdpb::MemberListResponse list;
    for (int i = 0; i < voters + learners; ++i) list.add_members()->set_is_learner(i >= voters);
    return Reply(list);
  }
  ServedAnswer Probe() {
    etcdpb::TxnResponse response;
    response.add_responses()->mutable_response_range();
    return Reply(response);
  }
  void Fill(etcdpb::RangeResponse& response) {
    etcdpb::KeyValue* const kv = response.add_kvs();
    kv->set_key("/leafd/leaf_alloc/order");
    kv->set_value(row.Text());
    kv->set_mod_revision(revision_);
  }
  ServedAnswer Range() {
    etcdpb::RangeResponse response;
    Fill(response);
    return Reply(response);
  }
  ServedAnswer Txn(const etcdpb::TxnRequest& txn) {
    etcdpb::TxnResponse response;
    if (contended) {
      ++revision_;
      row.max_id += 10;
    }
    const bool same = txn.compare_size() == 2 && txn.compare(0).mod_revision() == revision_ &&
                      txn.compare(1).value() == row.Text();
    response.set_succeeded(same);
    if (same) {
      ++revision_;
      row = *ParseEtcdValue("k", txn.success(0).request_put().value());
      response.add_responses()->mutable_response_put();
    } else {
      Fill(*response.add_responses()->mutable_response_range());
    }
    return Reply(response);
  }

  Mutex mu_;
  std::int64_t revision_ = 5;
  std::map<std::string, ServedAnswer> said_;
  std::map<std::string, int> calls_;
  rpc::Http2Server server_;  ///< last: its threads end first
};

ServedAnswer Fault(int status, const std::string& message) {
  return ServedAnswer::TrailersOnly(std::to_string(status), message);
}

class EtcdScriptedTest : public EtcdTest {
 protected:
  /// A reservation that comes after the session has been looked at again.
  Grant ReserveAfterALook(SegmentDriver& driver) {
    const int before = member_.calls("Status");
    Grant grant;
    EXPECT_TRUE(Eventually([&] {
      grant = Reserve(driver, "order", 1);
      return member_.calls("Status") > before;
    }));
    return grant;
  }

  Member member_;
};

TEST_F(EtcdScriptedTest, AReservationIsOneTrip) {
  const auto driver = Open(member_.options());
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  const int reads = member_.calls("Range");
  const int writes = member_.calls("Txn");
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{11, 21}));
  EXPECT_EQ(member_.calls("Range"), reads);
  EXPECT_EQ(member_.calls("Txn"), writes + 1);
}

TEST_F(EtcdScriptedTest, ARowMovedByOthersIsTriedAgainWithWhatItIsNow) {
  const auto driver = Open(member_.options());
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  const auto other = Open(member_.options());
  ASSERT_EQ(Reserve(*other, "order", 10).range, (Range{11, 21}));
  const int reads = member_.calls("Range"), writes = member_.calls("Txn");
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{21, 31}));
  EXPECT_EQ(member_.calls("Range"), reads) << "the refusal brought the row";
  EXPECT_EQ(member_.calls("Txn"), writes + 2);
}

// A backup was restored, and the cluster has counted up to where it was.
TEST_F(EtcdScriptedTest, ARevisionThatCameToStandForAnotherRowIsNotTakenForTheOld) {
  const auto driver = Open(member_.options());
  ASSERT_EQ(Reserve(*driver, "order", 10).range, (Range{1, 11}));
  member_.Change([](Member& m) { m.row = {500, 10}; });
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{500, 510}));
  member_.Change([](Member& m) { m.row = {400, 10}; });
  EXPECT_FALSE(*driver->HandBack("order", {505, 510}, In(kPatience)));
}

TEST_F(EtcdScriptedTest, WhoIsAlwaysSlowerThanOthersIsRefusedInTheEnd) {
  member_.Change([](Member& m) { m.contended = true; });
  const auto driver = Open(member_.options());
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("other servers moved"));
  EXPECT_TRUE(driver->connected());
  member_.Change([](Member& m) { m.contended = false; });
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
}

TEST_F(EtcdScriptedTest, AnErrorIsDefiniteOnlyIfNothingCanHaveHappened) {
  struct Case {
    int status;
    const char* message;
    Outcome outcome;
    bool stays;
  };
  const Case all[] = {
      {14, "etcdserver: no leader", Outcome::kRefused, false},
      {8, "etcdserver: too many requests", Outcome::kRefused, true},
      {8, "etcdserver: mvcc: database space exceeded", Outcome::kUnknown, false},
      {7, "etcdserver: permission denied", Outcome::kRefused, true},
      {14, "etcdserver: request timed out", Outcome::kUnknown, false},
      {14, "etcdserver: leader changed", Outcome::kUnknown, false},
      {14, "etcdserver: server stopped", Outcome::kUnknown, false},
      {4, "context deadline exceeded", Outcome::kUnknown, false},
      {13, "internal", Outcome::kUnknown, false},
      {2, "what", Outcome::kUnknown, false},
  };
  for (const Case& c : all) {
    SCOPED_TRACE(c.message);
    const auto driver = Open(member_.options());
    ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
    member_.Say("Txn", Fault(c.status, c.message));
    const Grant grant = Reserve(*driver, "order", 10);
    EXPECT_EQ(grant.outcome, c.outcome) << Describe(grant);
    EXPECT_EQ(grant.error.code, Code::kUnavailable);
    EXPECT_THAT(grant.error.message, HasSubstr(c.message));
    EXPECT_EQ(driver->connected(), c.stays);
    member_.Say("Txn", std::nullopt);
  }
}

TEST_F(EtcdScriptedTest, ALookThatFailsHasMovedNothing) {
  const auto driver = Open(member_.options());
  member_.Say("Range", Fault(14, "etcdserver: request timed out"));
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
}

TEST_F(EtcdScriptedTest, WhatIsNoAnswerOfEtcdsIsUnknown) {
  for (const char* body : {"\xff\xff\xff", "no protobuf at all", ""}) {
    const auto driver = Open(member_.options());
    ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
    member_.Say("Txn", ServedAnswer::Ok(body));
    const Grant grant = Reserve(*driver, "order", 10);
    EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
    EXPECT_FALSE(driver->connected());
    member_.Say("Txn", std::nullopt);
  }
}

TEST_F(EtcdScriptedTest, AnAnswerFromAnotherClusterIsUnknown) {
  const auto driver = Make(member_.options());
  EXPECT_EQ(driver->Open(In(kPatience))->identity, "etcd:abc");
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  member_.Change([](Member& m) { m.cluster_id = 0xdef; });
  const Grant grant = Reserve(*driver, "order", 10);
  EXPECT_EQ(grant.outcome, Outcome::kUnknown) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("another cluster"));
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(driver->Open(In(kPatience))->identity, "etcd:def");
}

TEST_F(EtcdScriptedTest, AConnectionThatFellSilentWhileIdleCostsNoReservation) {
  const auto driver = Open(member_.options());
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  const Instant idle = In(std::chrono::milliseconds(5050));
  while (SystemClock().Now() < idle) std::this_thread::sleep_for(idle - SystemClock().Now());
  member_.Silence(true);
  const Grant grant = Reserve(*driver, "order", 10, std::chrono::seconds(1));
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  member_.Silence(false);
  ASSERT_TRUE(driver->Open(In(kPatience)).ok());
  EXPECT_EQ(Reserve(*driver, "order", 10).range, (Range{11, 21})) << "nothing was burnt";
}

// --- What Open finds.

TEST_F(EtcdScriptedTest, OnlyVotersMakeAClusterReplicated) {
  const auto level = [&](int voters, int learners) {
    member_.Change([&](Member& m) {
      m.voters = voters;
      m.learners = learners;
    });
    return Make(member_.options())->Open(In(kPatience))->durability;
  };
  EXPECT_EQ(level(3, 0), Durability::kReplicated);
  EXPECT_EQ(level(2, 0), Durability::kReplicated);
  EXPECT_EQ(level(1, 0), Durability::kPower);
  EXPECT_EQ(level(1, 2), Durability::kPower);
}

TEST_F(EtcdScriptedTest, AListOfMembersThatMayNotBeReadCountsAsOneAndIsTold) {
  member_.Say("MemberList", Fault(7, "etcdserver: permission denied"));
  member_.Say("Status", Fault(7, "etcdserver: permission denied"));
  const auto driver = Make(member_.options());
  const auto info = driver->Open(In(kPatience));
  ASSERT_TRUE(info.ok()) << info.error().message;
  EXPECT_EQ(info->durability, Durability::kPower);
  EXPECT_THAT(info->warnings, testing::ElementsAre(HasSubstr("list of members")));
  EXPECT_EQ(ReserveAfterALook(*driver).outcome, Outcome::kGranted);
}

TEST_F(EtcdScriptedTest, AMemberThatCannotServeIsToldWhy) {
  member_.Change([](Member& m) { m.leader = 0; });
  EXPECT_THAT(Refusal(member_.options()), HasSubstr("no leader"));
  member_.Change([](Member& m) {
    m.leader = 1;
    m.is_learner = true;
  });
  EXPECT_THAT(Refusal(member_.options()), HasSubstr("learner"));
  member_.Change([](Member& m) {
    m.is_learner = false;
    m.errors = {"memberID:1 alarm:NOSPACE "};
  });
  EXPECT_THAT(Refusal(member_.options()),
              testing::AllOf(HasSubstr("read-only"), HasSubstr("etcdctl alarm disarm")));
  member_.Change([](Member& m) { m.errors = {"memberID:1 alarm:CORRUPT "}; });
  EXPECT_THAT(Refusal(member_.options()),
              testing::AllOf(HasSubstr("CORRUPT"), HasSubstr("etcdctl alarm disarm")));
  member_.Change([](Member& m) { m.errors.clear(); });
  Open(member_.options());
}

TEST_F(EtcdScriptedTest, AnotherMemberIsAskedWhereTheFirstCannotServe) {
  Member good;
  StoreOptions options = member_.options();
  options.servers += "," + good.options().servers;
  const auto driver = Open(options);
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  member_.Say("Txn", Fault(14, "etcdserver: no leader"));
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kRefused);
  EXPECT_FALSE(driver->connected());
  ASSERT_TRUE(driver->Open(In(kPatience)).ok());
  EXPECT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  EXPECT_GT(good.calls("Txn"), 0);
}

// --- What changes under a session.

TEST_F(EtcdScriptedTest, AClusterThatShrinksToOneIsNoticedBeforeTheNextReservationCounts) {
  const auto driver = Open(member_.options());
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  member_.Change([](Member& m) { m.voters = 1; });
  const Grant grant = ReserveAfterALook(*driver);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_FALSE(driver->connected());
  EXPECT_EQ(driver->Open(In(kPatience))->durability, Durability::kPower);
}

TEST_F(EtcdScriptedTest, AnAlarmIsNoticedBeforeTheNextReservationCounts) {
  const auto driver = Open(member_.options());
  ASSERT_EQ(Reserve(*driver, "order", 10).outcome, Outcome::kGranted);
  member_.Change([](Member& m) { m.errors = {"memberID:1 alarm:CORRUPT "}; });
  const Grant grant = ReserveAfterALook(*driver);
  EXPECT_EQ(grant.outcome, Outcome::kRefused) << Describe(grant);
  EXPECT_THAT(grant.error.message, HasSubstr("CORRUPT"));
  EXPECT_FALSE(driver->connected());
}

}  // namespace
}  // namespace leaf
