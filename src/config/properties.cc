#include "config/properties.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace leaf {
namespace {

constexpr std::string_view kUtf8Mark = "\xEF\xBB\xBF";

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\f'; }

struct Line {
  std::string text;  ///< logical: continued lines joined, still escaped
  int number = 0;    ///< of its first natural line
};

/// Cuts the file into natural lines and joins those that are continued.
class LineReader {
 public:
  explicit LineReader(std::string_view bytes) : rest_(bytes) {}

  /// The next line that is neither empty nor a comment.
  std::optional<Line> Next() {
    while (!rest_.empty()) {
      std::string_view natural = TakeNatural();
      SkipBlanks(natural);
      if (natural.empty() || natural.front() == '#' || natural.front() == '!') continue;
      Line line = Join(natural);
      if (!line.text.empty()) return line;
    }
    return std::nullopt;
  }

 private:
  std::string_view TakeNatural() {
    const auto end = std::min(rest_.find_first_of("\r\n"), rest_.size());
    const std::string_view natural = rest_.substr(0, end);
    rest_.remove_prefix(end);
    if (rest_.starts_with("\r\n")) {
      rest_.remove_prefix(2);
    } else if (!rest_.empty()) {
      rest_.remove_prefix(1);
    }
    ++number_;
    return natural;
  }

  static void SkipBlanks(std::string_view& text) {
    while (!text.empty() && IsBlank(text.front())) text.remove_prefix(1);
  }

  static bool IsContinued(std::string_view natural) {
    const auto last = natural.find_last_not_of('\\');
    const std::size_t backslashes =
        natural.size() - (last == std::string_view::npos ? 0 : last + 1);
    return backslashes % 2 == 1;
  }

  Line Join(std::string_view natural) {
    Line line{"", number_};
    // Each natural line is judged by itself: a backslash pair never spans two of them.
    while (IsContinued(natural)) {
      line.text += natural.substr(0, natural.size() - 1);
      if (rest_.empty()) return line;
      natural = TakeNatural();
      SkipBlanks(natural);
    }
    line.text += natural;
    return line;
  }

  std::string_view rest_;
  int number_ = 0;
};

void AppendUtf8(std::uint32_t code, std::string& out) {
  const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool IsHighSurrogate(std::uint32_t unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool IsLowSurrogate(std::uint32_t unit) { return unit >= 0xDC00 && unit < 0xE000; }

/// The four hexadecimal digits at the start of `text`.
std::optional<std::uint32_t> HexUnit(std::string_view text) {
  if (text.size() < 4) return std::nullopt;
  std::uint32_t unit = 0;
  for (const char c : text.substr(0, 4)) {
    const std::string_view digits = "0123456789abcdef";
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto digit = digits.find(lower);
    if (digit == std::string_view::npos) return std::nullopt;
    unit = unit * 16 + static_cast<std::uint32_t>(digit);
  }
  return unit;
}

/// Takes "XXXX", and the other half of a surrogate pair, off `text`; false if Java would refuse it
/// or no text can hold it.
bool TakeUnicode(std::string_view& text, std::string& out) {
  const auto unit = HexUnit(text);
  if (!unit || *unit == 0 || IsLowSurrogate(*unit)) return false;
  text.remove_prefix(4);
  if (!IsHighSurrogate(*unit)) {
    AppendUtf8(*unit, out);
    return true;
  }
  if (!text.starts_with("\\u")) return false;
  const auto low = HexUnit(text.substr(2));
  if (!low || !IsLowSurrogate(*low)) return false;
  text.remove_prefix(6);
  AppendUtf8(0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00), out);
  return true;
}

char Unescape(char c) {
  switch (c) {
    case 't':
      return '\t';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 'f':
      return '\f';
    default:
      return c;
  }
}

/// Resolves escapes and turns ISO-8859-1 into UTF-8; nullopt for a malformed \u.
std::optional<std::string> Decode(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    char c = text.front();
    text.remove_prefix(1);
    if (c == '\\' && text.starts_with('u')) {
      text.remove_prefix(1);
      if (!TakeUnicode(text, out)) return std::nullopt;
      continue;
    }
    if (c == '\\') {
      if (text.empty()) break;
      c = Unescape(text.front());
      text.remove_prefix(1);
    }
    AppendUtf8(static_cast<unsigned char>(c), out);
  }
  return out;
}

/// Where the key ends: the first separator that is not escaped.
std::size_t KeyEnd(std::string_view line) {
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '=' || line[i] == ':' || IsBlank(line[i])) {
      return i;
    }
  }
  return line.size();
}

std::string_view ValueOf(std::string_view line, std::size_t key_end) {
  line.remove_prefix(key_end);
  bool separated = false;
  while (!line.empty()) {
    if (!IsBlank(line.front())) {
      if (separated || (line.front() != '=' && line.front() != ':')) break;
      separated = true;
    }
    line.remove_prefix(1);
  }
  return line;
}

/// Errors that make the rest of the file meaningless.
void CheckEncoding(std::string_view bytes, PropertiesFile& file) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) {
    file.errors.push_back({1, "the file is UTF-16; save it as ISO-8859-1 or ASCII"});
    return;
  }
  const auto nul = bytes.find('\0');
  if (nul == std::string_view::npos) return;
  int line = 1;
  for (std::size_t i = 0; i < nul; ++i) {
    line += bytes[i] == '\n' || (bytes[i] == '\r' && bytes[i + 1] != '\n');
  }
  file.errors.push_back({line, "a NUL byte; is the file UTF-16 or binary?"});
}

bool HasHighByte(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
}

}  // namespace

PropertiesFile ParseProperties(std::string_view bytes) {
  PropertiesFile file;
  if (bytes.starts_with(kUtf8Mark)) bytes.remove_prefix(kUtf8Mark.size());
  CheckEncoding(bytes, file);
  if (!file.errors.empty()) return file;
  LineReader lines(bytes);
  while (const auto line = lines.Next()) {
    const std::size_t end = KeyEnd(line->text);
    auto key = Decode(std::string_view(line->text).substr(0, end));
    auto value = Decode(ValueOf(line->text, end));
    if (!key || !value) {
      file.errors.push_back(
          {line->number, "a malformed \\uXXXX escape, or one for NUL or half a pair"});
      continue;
    }
    if (HasHighByte(line->text)) {
      file.warnings.push_back(
          {line->number, "bytes beyond ASCII are read as ISO-8859-1, as Java does; write \\uXXXX"});
    }
    file.entries.push_back({std::move(*key), std::move(*value), line->number});
  }
  return file;
}

}  // namespace leaf
