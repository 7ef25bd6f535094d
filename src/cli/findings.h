#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leaf::doctor {

enum class Severity : std::uint8_t {
  kOk,
  kWarning,  ///< leafd serves, but somebody should know
  kError,    ///< leafd would refuse: to start, to serve, or one tag
};
std::string_view SeverityName(Severity severity) noexcept;

/// One thing that was found.
struct Finding {
  Severity severity = Severity::kOk;
  std::string check;    ///< "config", "state", "store", "durability", "privileges", "rows",
                        ///< "marks", "registry", "workers", "clock"
  std::string subject;  ///< what it is about: a URL, a table, a tag, a file
  std::string found;    ///< a sentence
  std::string mend;     ///< the statement or setting that mends it; empty if nothing is to be done
};

/// A sentence of a driver's, which ends with its remedy, in two. What begins as a statement or
/// command ("ALTER TABLE ..;", "chmod ..") behind a colon, semicolon or comma is the remedy;
/// without one, what follows the last semicolon. `mend` is empty if there is neither.
struct Said {
  std::string found, mend;
};
Said SplitRemedy(std::string_view message);

/// What a doctor has to say. A plain value.
struct Report {
  std::string kind, url;             ///< of the store; the URL without secrets
  std::string durability, identity;  ///< empty if the store could not be asked
  std::vector<Finding> findings;

  /// Once: a finding that says the same as an earlier one is dropped, as a server that holds tags
  /// and workers is judged twice.
  void Add(Finding finding);
  void Ok(std::string check, std::string subject, std::string found);
  /// With the remedy that `message` holds, or else `remedy`.
  void Say(Severity severity, std::string check, std::string subject, std::string_view message,
           std::string_view remedy = {});

  Severity Worst() const noexcept;
  /// One line a finding, its remedy indented below; the verdict is the last line.
  std::string Text() const;
  /// One object, and a newline.
  std::string Json() const;
};

}  // namespace leaf::doctor
