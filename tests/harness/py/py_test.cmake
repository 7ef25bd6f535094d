include_guard(GLOBAL)

# leaf_py_test(FILE [TIMEOUT seconds] [ALONE]): one ctest entry for a unittest program, named after the file.
# The timeout is the short form's; a long form (LEAF_LONG=1) has none of its own.
# ALONE: nothing runs beside it, because it loads the machine or judges times.
function(leaf_py_test file)
  cmake_parse_arguments(ARG "ALONE" "TIMEOUT" "" ${ARGN})
  get_filename_component(name ${file} NAME_WE)
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  set(factor 1)
  if(LEAF_SANITIZE)
    set(factor 4)
  endif()
  math(EXPR timeout "${ARG_TIMEOUT} * ${factor}")
  add_test(NAME ${name} COMMAND /usr/bin/python3 ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  set(bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
  set_tests_properties(${name} PROPERTIES
    LABELS e2e
    ENVIRONMENT "PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/harness/py;PYTHONDONTWRITEBYTECODE=1;LEAFD_BIN=${bin}/leafd;IDLOAD_BIN=${bin}/idload;IDCHECK_BIN=${bin}/idcheck;BUILD_DIR=${CMAKE_BINARY_DIR};LEAF_TIME_FACTOR=${factor};LEAF_TEST_TIMEOUT=${timeout}")
  if(ARG_ALONE)
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()
