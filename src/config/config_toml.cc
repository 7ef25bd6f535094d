// Two kinds of documents must be kept away from toml++ 3.3: a header without a name ("[.a]") breaks
// an assertion of its parser, and characters beyond ASCII run into code that it calls unreachable.
// So it is given an ASCII copy, whose headers have names. What this may have missed of the first
// kind is thrown, not aborted on, whatever the kind of build.
#undef NDEBUG
#define TOML_ASSERT(condition) \
  (static_cast<void>((condition) || (throw leaf::config::BrokenAssertion{}, false)))

namespace leaf::config {
struct BrokenAssertion {};
}  // namespace leaf::config

#include "config/config_toml.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

// Header-only: the shared library would cost every start of leafd.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 1
#define TOML_ENABLE_FORMATTERS 0
#pragma GCC diagnostic push
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wterminate"  // the assertions of functions that are noexcept
#else
#pragma GCC diagnostic ignored "-Wexceptions"
#endif
#include <toml++/toml.h>
#pragma GCC diagnostic pop

namespace leaf::config {
namespace {

/// The code point at the start of `text`, and how many bytes it takes; 0 bytes if it is not UTF-8.
std::pair<std::uint32_t, std::size_t> DecodeUtf8(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t size = byte(0) < 0x80   ? 1
                           : byte(0) < 0xC2 ? 0
                           : byte(0) < 0xE0 ? 2
                           : byte(0) < 0xF0 ? 3
                           : byte(0) < 0xF5 ? 4
                                            : 0;
  if (size == 0 || size > text.size()) return {0, 0};
  constexpr std::array<std::uint32_t, 5> kFirstBits = {0, 0x7F, 0x1F, 0x0F, 0x07};
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  std::uint32_t code = byte(0) & kFirstBits[size];
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return {0, 0};
    code = (code << 6) | (byte(i) & 0x3F);
  }
  const bool valid =
      code >= kSmallest[size] && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  return {code, valid ? size : 0};
}

/// Copies a document line by line: without the texts of comments, and with every character beyond
/// ASCII as an escape. Follows strings and brackets, and leaves every other mistake to the parser.
class AsciiCopy {
 public:
  explicit AsciiCopy(std::string_view document) : in_(document) {
    if (in_.starts_with("\xFF\xFE") || in_.starts_with("\xFE\xFF"))
      Fail("the file is UTF-16; save it as UTF-8");
    if (in_.starts_with("\xEF\xBB\xBF")) at_ = line_start_ = 3;
    while (at_ < in_.size() && !problem_) Step();
  }

  const std::string& text() const { return out_; }
  const std::optional<TomlFile::Problem>& problem() const { return problem_; }

 private:
  void Step() {
    const char c = in_[at_];
    if (c == '#') {
      at_ = std::min(in_.find('\n', at_), in_.size());
    } else if (c == '"' || c == '\'') {
      String(c);
    } else if (c == '[' && fresh_ && depth_ == 0) {
      Header();
    } else {
      Other(c);
    }
    fresh_ = c == '\n' || (fresh_ && (c == ' ' || c == '\t' || c == '\r'));
  }

  void Other(char c) {
    if (!IsAscii(c)) return Fail("a character beyond ASCII must be in quotes");
    if (c == '[' || c == '{') ++depth_;
    if ((c == ']' || c == '}') && depth_ > 0) --depth_;
    if (c == '.' && ++dots_ > kMaxDots) return Fail("a key has too many parts");
    out_ += c;
    ++at_;
    if (c != '\n') return;
    ++line_;
    line_start_ = at_;
    dots_ = 0;
  }

  void Header() {
    const std::size_t name =
        in_.find_first_not_of(" \t", at_ + (in_.substr(at_).starts_with("[[") ? 2 : 1));
    const bool named = name != std::string_view::npos && BeginsKey(in_[name]);
    if (!named) return Fail("a table needs a name: [section]");
    out_ += in_.substr(at_, name - at_);
    at_ = name;
  }

  void String(char quote) {
    if (in_.substr(at_).starts_with(std::string(3, quote)))
      return Fail("strings of several lines are not supported");
    const std::size_t end = FindEnd(quote);
    if (end == std::string_view::npos) return Fail("a string has no closing quote");
    const std::string_view inside = in_.substr(at_ + 1, end - at_ - 1);
    if (quote == '\'' && std::all_of(inside.begin(), inside.end(), IsAscii)) {
      out_ += in_.substr(at_, end + 1 - at_);
    } else {
      out_ += '"';
      Escape(inside, quote);
      out_ += '"';
    }
    if (!problem_) at_ = end + 1;
  }

  /// Where the string that begins here has its other quote.
  std::size_t FindEnd(char quote) const {
    for (std::size_t i = at_ + 1; i < in_.size() && in_[i] != '\n'; ++i) {
      if (in_[i] == quote) return i;
      if (quote == '"' && in_[i] == '\\') ++i;
    }
    return std::string_view::npos;
  }

  void Escape(std::string_view inside, char quote) {
    while (!inside.empty()) {
      const auto [code, size] = DecodeUtf8(inside);
      const bool after_backslash = quote == '"' && backslashes_ % 2 == 1;
      if (size == 0) return Fail("the file is not UTF-8");
      if (size > 1 && after_backslash) return Fail("a string has an unknown escape");
      backslashes_ = inside.front() == '\\' ? backslashes_ + 1 : 0;
      if (size > 1) {
        std::array<char, 11> escape;
        std::snprintf(escape.data(), escape.size(), "\\U%08X", code);
        out_ += escape.data();
      } else {
        if (quote == '\'' && (inside.front() == '"' || inside.front() == '\\')) out_ += '\\';
        out_ += inside.front();
      }
      inside.remove_prefix(size);
    }
    backslashes_ = 0;
  }

  static bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }
  static bool BeginsKey(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '"' || c == '\'';
  }
  void Fail(std::string_view text) {
    problem_ = TomlFile::Problem{line_, static_cast<int>(at_ - line_start_) + 1, std::string(text)};
  }

  // A table in a table in a table ends in a recursion as deep.
  static constexpr int kMaxDots = 64;

  const std::string_view in_;
  std::string out_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  int dots_ = 0;         ///< on this line, outside of strings
  int depth_ = 0;        ///< of brackets that are open
  int backslashes_ = 0;  ///< in a row, before the current character of a string
  bool fresh_ = true;    ///< only blanks so far on this line
  std::optional<TomlFile::Problem> problem_;
};

std::string TypeName(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::floating_point:
      return "a float";
    case toml::node_type::date:
    case toml::node_type::time:
    case toml::node_type::date_time:
      return "a date";
    case toml::node_type::array:
      return "an array that holds more than strings";
    default:
      return "of an unknown type";
  }
}

Raw ReadArray(const toml::array& array) {
  Raw raw{Raw::Form::kStrings, "", {}};
  for (const toml::node& element : array) {
    const auto* text = element.as_string();
    if (text == nullptr) return Raw{Raw::Form::kOther, TypeName(array), {}};
    raw.list.push_back(text->get());
  }
  return raw;
}

Raw ReadNode(const toml::node& node) {
  if (const auto* text = node.as_string()) return {Raw::Form::kString, text->get(), {}};
  if (const auto* number = node.as_integer()) {
    return {Raw::Form::kInteger, std::to_string(number->get()), {}};
  }
  if (const auto* flag = node.as_boolean()) {
    return {Raw::Form::kBool, flag->get() ? "true" : "false", {}};
  }
  if (const auto* array = node.as_array()) return ReadArray(*array);
  if (node.is_table()) return {Raw::Form::kTable, "", {}};
  return {Raw::Form::kOther, TypeName(node), {}};
}

// The parser bounds how deep a document nests.
void ReadTable(const toml::table& table, const std::string& prefix, TomlFile& file) {
  for (auto&& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    const toml::table* inner = node.as_table();
    if (inner != nullptr && !inner->empty()) {
      ReadTable(*inner, name + ".", file);
    } else {
      file.entries.push_back({name, ReadNode(node), static_cast<int>(key.source().begin.line)});
    }
  }
}

bool Breaks(std::string_view text) {
  try {
    static_cast<void>(toml::parse(text));
  } catch (const toml::parse_error&) {
  } catch (const BrokenAssertion&) {
    return true;
  }
  return false;
}

/// The line that breaks an assertion of the parser: it ends the shortest beginning that does.
int FindBroken(std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t at = 0; at < text.size(); at = ends.back()) {
    ends.push_back(std::min(text.find('\n', at), text.size() - 1) + 1);
  }
  const auto first = std::partition_point(
      ends.begin(), ends.end(), [text](std::size_t end) { return !Breaks(text.substr(0, end)); });
  return static_cast<int>(first - ends.begin()) + 1;
}

}  // namespace

TomlFile ParseToml(std::string_view document) {
  TomlFile file;
  const AsciiCopy copy(document);
  file.problem = copy.problem();
  if (file.problem) return file;
  try {
    ReadTable(toml::parse(copy.text()), "", file);
  } catch (const toml::parse_error& error) {
    file.problem = TomlFile::Problem{static_cast<int>(error.source().begin.line),
                                     static_cast<int>(error.source().begin.column),
                                     std::string(error.description())};
  } catch (const BrokenAssertion&) {
    file.problem = TomlFile::Problem{FindBroken(copy.text()), 1, "this line is not TOML"};
  }
  std::stable_sort(file.entries.begin(), file.entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return file;
}

}  // namespace leaf::config
