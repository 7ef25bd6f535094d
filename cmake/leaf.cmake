# Compile settings and the two ways to declare something: a library of a room, and its tests.

option(LEAF_TESTS "Build the tests and the benchmark probes" ON)
option(LEAF_BENCH "Build the benchmark probes" OFF)
option(LEAF_FUZZ "Build the fuzzers; needs clang" OFF)
option(LEAF_THREAD_SAFETY "Check the lock annotations; needs clang" OFF)
set(LEAF_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them (address,undefined or thread)")

if(LEAF_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

add_library(leaf_options INTERFACE)
target_include_directories(leaf_options INTERFACE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_options(leaf_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Woverloaded-virtual -Wimplicit-fallthrough -Wswitch -Wvla -Werror
  -fstack-protector-strong -fstack-clash-protection -fcf-protection)
target_compile_definitions(leaf_options INTERFACE _GLIBCXX_ASSERTIONS LEAFD_VERSION="${PROJECT_VERSION}")
if(LEAF_TESTS)
  target_compile_definitions(leaf_options INTERFACE LEAF_FAILPOINTS)  # base/failpoint.h
endif()
target_link_options(leaf_options INTERFACE -pie -Wl,-z,relro,-z,now,-z,noexecstack)
if(LEAF_THREAD_SAFETY)
  target_compile_options(leaf_options INTERFACE -Wthread-safety)
endif()
if(LEAF_SANITIZE)
  target_compile_options(leaf_options INTERFACE -fsanitize=${LEAF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(leaf_options INTERFACE -fsanitize=${LEAF_SANITIZE})
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
  # _FORTIFY_SOURCE needs optimisation, and its checks hide reports from the sanitizers.
  set(LEAF_FORTIFY -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3)
  target_compile_options(leaf_options INTERFACE "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:LEAF_UNOPTIMISED>>>:${LEAF_FORTIFY}>")
endif()

if(LEAF_TESTS)
  # GoogleTest's headers take longer to compile than most tests: compiled once, for all of them.
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/leaf_test_pch.cc CONTENT "int main() {}\n")
  add_executable(leaf_test_pch EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/leaf_test_pch.cc)
  target_link_libraries(leaf_test_pch PRIVATE leaf_options GTest::gmock Threads::Threads)
  target_compile_options(leaf_test_pch PRIVATE -fpch-preprocess -O0)
  set_target_properties(leaf_test_pch PROPERTIES LEAF_UNOPTIMISED ON)
  target_precompile_headers(leaf_test_pch PRIVATE <gtest/gtest.h> <gmock/gmock.h> <atomic> <chrono> <functional>
    <map> <memory> <string> <string_view> <thread> <vector>)
endif()

# leaf_library(NAME SOURCES a.cc ... [DEPENDS target ...])
function(leaf_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC leaf_options ${ARG_DEPENDS} Threads::Threads)
endfunction()

# leaf_test(NAME SOURCES a_test.cc ... [DEPENDS target ...] [LABELS label ...]): one gtest program, one ctest entry a program.
function(leaf_test name)
  if(NOT LEAF_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;DEPENDS;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main Threads::Threads)
  # Optimising a test takes longer than compiling it, and than what it saves when it runs.
  set_target_properties(${name} PROPERTIES LEAF_UNOPTIMISED ON)
  target_compile_options(${name} PRIVATE -fpch-preprocess -O0)
  target_precompile_headers(${name} REUSE_FROM leaf_test_pch)
  add_test(NAME ${name} COMMAND ${name})
  if("tsan" IN_LIST ARG_LABELS)
    set_property(GLOBAL APPEND PROPERTY LEAF_TSAN_PROGRAMS ${name})
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} LABELS "unit;${ARG_LABELS}")
  if(ARG_ENVIRONMENT)
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "${ARG_ENVIRONMENT}")
  endif()
endfunction()

# Target tsan_tests: the test programs labelled tsan, so that a ThreadSanitizer build need not build the rest.
function(leaf_tsan_target)
  get_property(programs GLOBAL PROPERTY LEAF_TSAN_PROGRAMS)
  add_custom_target(tsan_tests DEPENDS ${programs})
endfunction()
