#include "store/sqlite/fault_vfs.h"

#include <sqlite3.h>

#include <new>

#include "base/assert.h"

namespace leaf::sqlite {
namespace {

Faults& Switches() {
  static Faults faults;
  return faults;
}

sqlite3_vfs* Host() {
  static sqlite3_vfs* const host = sqlite3_vfs_find("unix");
  return host;
}

struct File {
  sqlite3_file base;
  sqlite3_file* host;  // behind this struct in the same block
};

sqlite3_file* HostOf(sqlite3_file* file) { return reinterpret_cast<File*>(file)->host; }

int Close(sqlite3_file* f) { return HostOf(f)->pMethods->xClose(HostOf(f)); }
int Read(sqlite3_file* f, void* to, int n, sqlite3_int64 at) {
  return HostOf(f)->pMethods->xRead(HostOf(f), to, n, at);
}
int Write(sqlite3_file* f, const void* from, int n, sqlite3_int64 at) {
  if (Switches().read_only) return SQLITE_IOERR_WRITE;
  if (const int error = Switches().write_error) return error;
  return HostOf(f)->pMethods->xWrite(HostOf(f), from, n, at);
}
int Truncate(sqlite3_file* f, sqlite3_int64 n) {
  return HostOf(f)->pMethods->xTruncate(HostOf(f), n);
}
int Sync(sqlite3_file* f, int flags) {
  ++Switches().syncs;
  if (const int error = Switches().sync_error) return error;
  return HostOf(f)->pMethods->xSync(HostOf(f), flags);
}
int Size(sqlite3_file* f, sqlite3_int64* n) { return HostOf(f)->pMethods->xFileSize(HostOf(f), n); }
int Lock(sqlite3_file* f, int l) { return HostOf(f)->pMethods->xLock(HostOf(f), l); }
int Unlock(sqlite3_file* f, int l) { return HostOf(f)->pMethods->xUnlock(HostOf(f), l); }
int Reserved(sqlite3_file* f, int* out) {
  return HostOf(f)->pMethods->xCheckReservedLock(HostOf(f), out);
}
int Control(sqlite3_file* f, int op, void* arg) {
  return HostOf(f)->pMethods->xFileControl(HostOf(f), op, arg);
}
int Sector(sqlite3_file* f) { return HostOf(f)->pMethods->xSectorSize(HostOf(f)); }
int Traits(sqlite3_file* f) { return HostOf(f)->pMethods->xDeviceCharacteristics(HostOf(f)); }
int ShmMap(sqlite3_file* f, int page, int size, int extend, void volatile** out) {
  return HostOf(f)->pMethods->xShmMap(HostOf(f), page, size, extend, out);
}
int ShmLock(sqlite3_file* f, int at, int n, int flags) {
  return HostOf(f)->pMethods->xShmLock(HostOf(f), at, n, flags);
}
void ShmBarrier(sqlite3_file* f) { HostOf(f)->pMethods->xShmBarrier(HostOf(f)); }
int ShmUnmap(sqlite3_file* f, int remove) {
  return HostOf(f)->pMethods->xShmUnmap(HostOf(f), remove);
}

const sqlite3_io_methods kMethods = {
    2,       Close,  Read,   Write,  Truncate, Sync,       Size,     Lock,    Unlock, Reserved,
    Control, Sector, Traits, ShmMap, ShmLock,  ShmBarrier, ShmUnmap, nullptr, nullptr};

int Open(sqlite3_vfs*, const char* name, sqlite3_file* f, int flags, int* out) {
  auto* file = reinterpret_cast<File*>(f);
  file->base.pMethods = nullptr;
  file->host = reinterpret_cast<sqlite3_file*>(file + 1);
  if (Switches().read_only) {
    // As the host does when only reading is permitted.
    flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
  }
  const int code = Host()->xOpen(Host(), name, file->host, flags, out);
  if (file->host->pMethods != nullptr) file->base.pMethods = &kMethods;
  return code;
}

}  // namespace

Faults& InstallFaultVfs() {
  static sqlite3_vfs* const layer = [] {
    auto* vfs = new sqlite3_vfs(*Host());
    vfs->szOsFile = static_cast<int>(sizeof(File)) + Host()->szOsFile;
    vfs->zName = "leaf-faults";
    vfs->xOpen = Open;
    return vfs;
  }();
  LEAF_ASSERT(sqlite3_vfs_register(layer, 1) == SQLITE_OK);
  return Switches();
}

}  // namespace leaf::sqlite
