#pragma once

#include <string>

namespace leaf::harness {

/// Keys and certificates NAME.key and NAME.pem in a folder, made by the openssl program:
///   ca, other      authorities
///   good           of ca, for localhost and 127.0.0.1
///   by-name        of ca, for localhost alone
///   wrong          of ca, for another host
///   foreign        of other, for localhost and 127.0.0.1
///   expired        of ca, for localhost and 127.0.0.1, years ago
///   self           signed by itself, for localhost and 127.0.0.1
/// A failure fails the test.
class Certificates {
 public:
  /// The folder exists and stays as long as this is used.
  explicit Certificates(std::string folder);
  std::string Pem(const std::string& name) const { return folder_ + "/" + name + ".pem"; }
  std::string Key(const std::string& name) const { return folder_ + "/" + name + ".key"; }

 private:
  void Run(const std::string& command);
  void MakeAuthority(const std::string& name);
  void Make(const std::string& name, const std::string& authority, const std::string& names,
            const std::string& dates = "");

  const std::string folder_;
};

}  // namespace leaf::harness
