#include "cli/findings.h"

#include <gtest/gtest.h>

namespace leaf::doctor {
namespace {

TEST(SplitRemedyTest, FindsTheStatementBehindASeparator) {
  const Said said = SplitRemedy(
      "the table t has the engine MyISAM, which does not keep it: ALTER TABLE t ENGINE=InnoDB;");
  EXPECT_EQ(said.found, "the table t has the engine MyISAM, which does not keep it");
  EXPECT_EQ(said.mend, "ALTER TABLE t ENGINE=InnoDB;");
}

TEST(SplitRemedyTest, AStatementMayHoldAnother) {
  EXPECT_EQ(SplitRemedy("fsync = off; ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();").mend,
            "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf();");
}

TEST(SplitRemedyTest, ARemarkBehindTheStatementIsNoPartOfIt) {
  const Said said =
      SplitRemedy("no privilege on t: GRANT SELECT ON t TO u; (if t is missing: CREATE TABLE t;)");
  EXPECT_EQ(said.found, "no privilege on t (if t is missing: CREATE TABLE t;)");
  EXPECT_EQ(said.mend, "GRANT SELECT ON t TO u;");
}

TEST(SplitRemedyTest, WordsOfAServerAreNoStatement) {
  const Said said = SplitRemedy("UPDATE command denied; GRANT UPDATE ON t TO u;");
  EXPECT_EQ(said.found, "UPDATE command denied");
  EXPECT_EQ(said.mend, "GRANT UPDATE ON t TO u;");
}

TEST(SplitRemedyTest, AdviceFollowsTheLastSemicolon) {
  const Said said = SplitRemedy("it is read-only; the file too; point store.url at the primary");
  EXPECT_EQ(said.found, "it is read-only; the file too");
  EXPECT_EQ(said.mend, "point store.url at the primary");
  EXPECT_EQ(SplitRemedy("no advice").found, "no advice");
  EXPECT_EQ(SplitRemedy("no advice").mend, "");
}

TEST(ReportTest, SaysTheSameOnceAndTheWorstLast) {
  Report report;
  report.Ok("state", "/s", "fine");
  EXPECT_EQ(report.Worst(), Severity::kOk);
  report.Say(Severity::kWarning, "store", "u", "slow; hurry");
  report.Say(Severity::kWarning, "registry", "u", "slow; hurry");
  report.Say(Severity::kError, "store", "u", "gone", "start it");
  EXPECT_EQ(report.findings.size(), 3U);
  EXPECT_EQ(report.Text(),
            "ok: state: /s: fine\n"
            "warning: store: u: slow\n    mend: hurry\n"
            "error: store: u: gone\n    mend: start it\n"
            "verdict: error\n");
}

TEST(ReportTest, ALineStaysALineAndJsonIsEscaped) {
  Report report;
  report.kind = "sqlite";
  report.Ok("rows", "tag 'a\nb'", "x\x1b[0m");
  EXPECT_EQ(report.Text(), "ok: rows: tag 'a\\x0ab': x\\x1b[0m\nverdict: ok\n");
  EXPECT_EQ(report.Json().find('\n'), report.Json().size() - 1);
  EXPECT_NE(report.Json().find(R"("subject":"tag 'a\nb'")"), std::string::npos) << report.Json();
}

}  // namespace
}  // namespace leaf::doctor
