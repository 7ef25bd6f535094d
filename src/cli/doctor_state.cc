// The state folder and the journal of marks, both only read: a leafd may be using them.

#include <dirent.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/pid_lock.h"
#include "cli/doctor_checks.h"
#include "core/segment/lineage.h"
#include "server/stores.h"
#include "state/mark_file.h"
#include "state/state_dir.h"

namespace leaf::doctor {
namespace {

// Journals that belong to other tables: what this folder remembers does not serve here.
std::vector<std::string> OtherJournals(const std::string& folder, const std::string& own) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), &closedir);
  if (!dir) return names;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string name = entry->d_name;
    if (name.starts_with("marks-") && name != own && name.find('.') == std::string::npos)
      names.push_back(name);
  }
  return names;
}

}  // namespace

void CheckStateFolder(Context& context) {
  const std::string& folder = context.config.server.state_dir;
  const Result<std::string> judged = StateDir::Judge(folder);
  if (!judged.ok())
    return context.report.Say(Severity::kError, "state", folder, judged.error().message);
  if (access(folder.c_str(), F_OK) != 0)
    return context.report.Ok("state", folder, "it is not there yet; leafd makes it");
  if (!judged->empty()) context.report.Say(Severity::kWarning, "state", folder, *judged);
  const Result<std::string> holder = PidLock::HolderOf(folder + "/leafd.lock");
  if (!holder.ok()) {
    context.report.Say(Severity::kError, "state", folder, holder.error().message,
                       "let the user that leafd runs as own the folder and all in it");
  } else if (!holder->empty()) {
    context.report.Ok("state", folder, "it is in use by " + *holder + ": leafd is running");
  } else {
    context.report.Ok("state", folder, "it can be used, and nobody uses it");
  }
}

void CheckMarks(Context& context) {
  const std::string& folder = context.config.server.state_dir;
  const std::string name = MarkFileName(context.config.store);
  const std::string path = folder + "/" + name;
  const auto entries = MarkFile::Read(path);
  if (!entries.ok())
    return context.report.Say(Severity::kError, "marks", path, entries.error().message,
                              "let the user that leafd runs as own it");
  if (*entries) {
    for (const MarkJournal::Entry& entry : **entries) context.marks[entry.tag] = entry.mark;
    return context.report.Ok(
        "marks", path,
        "the journal of marks knows " + std::to_string((*entries)->size()) + " tags");
  }
  const std::vector<std::string> others = OtherJournals(folder, name);
  std::string found =
      "there is no journal of marks for this store: that it went back before now "
      "could not be noticed";
  for (const std::string& other : others)
    found += (&other == &others.front() ? " (of other stores: " : ", ") + other;
  if (!others.empty()) found += ")";
  if (context.config.segment.require_marks) {
    context.report.Say(
        Severity::kError, "marks", path, found,
        "restore the state folder, or start once with segment.require_marks = false");
  } else if (!others.empty()) {
    context.report.Say(Severity::kWarning, "marks", path, found,
                       "if this table was moved here from another store: have each row above what "
                       "the other had; else nothing");
  } else {
    context.report.Ok("marks", path, found + "; leafd makes one at its first start");
  }
}

// By the rule that a starting server follows.
void CheckStoreChange(Context& context) {
  if (context.store->identity.empty() || context.marks.empty()) return;
  Lineage lineage;
  for (const auto& [tag, mark] : context.marks) lineage.Remember(mark.generation, mark.store);
  const Lineage::Heard heard = lineage.Hear(IdentityHash(context.store->identity), 0);
  if (heard.word != Lineage::Word::kAnother) return;
  const std::int64_t skip = context.config.failover_skip;
  context.report.Say(
      Severity::kWarning, "marks", context.config.store.display_url,
      "another server or file answers than the one that this state folder knows (a failover, a "
      "restore, or another host): leafd raises each row by store.failover_skip (" +
          (skip == 0 ? std::string("auto") : std::to_string(skip)) + ") before it serves from it",
      "make sure that it has all that the former one had acknowledged, or that store.failover_skip "
      "is larger than what it can lack");
}

}  // namespace leaf::doctor
