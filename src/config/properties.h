#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace leaf {

/// One entry of a file in the format of java.util.Properties; key and value are UTF-8.
struct Property {
  std::string key, value;
  int line = 0;  ///< where it begins, from 1
};

struct PropertiesFile {
  struct Note {
    int line = 0;
    std::string text;
  };
  std::vector<Property>
      entries;               ///< in the order of the file; keys may repeat, the last one counts
  std::vector<Note> errors;  ///< Java would refuse, or could not have meant it
  std::vector<Note> warnings;
};

/// Reads `bytes` as java.util.Properties.load(InputStream) does: ISO-8859-1, \uXXXX and the other
/// escapes, continued lines, '=', ':' or blanks between key and value, trailing blanks kept, lines
/// ended by CR, LF or CRLF. Differs in that a UTF-8 byte order mark is skipped, and that UTF-16 and
/// NUL are errors. An error leaves out its entry, or the whole file if its encoding is wrong.
PropertiesFile ParseProperties(std::string_view bytes);

}  // namespace leaf
