# photond_test(NAME SOURCES a.c ... LIBS d7_static ... LABELS unit [ARGS ...]): one cmocka program, one CTest entry.
# photond_script_test(NAME SCRIPT path LABELS interop [ARGS ...] [TIMEOUT s]): a Python or shell script; exit 77 is a skip, which
# PHOTOND_REQUIRE_ALL=1 in the environment turns into a failure (tests/lib/require.py).
# Tests run side by side (ctest -j), but those that link the daemon or the client: they talk to each other under short time-outs, and
# have the machine to themselves.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

set(PHOTOND_PYTHON "" CACHE FILEPATH "Python for the tests; default: build/venv, else python3")
if(NOT PHOTOND_PYTHON)
  if(EXISTS ${PROJECT_SOURCE_DIR}/build/venv/bin/python)
    set(PHOTOND_PYTHON ${PROJECT_SOURCE_DIR}/build/venv/bin/python CACHE FILEPATH "" FORCE)
  else()
    find_program(PHOTOND_PYTHON3 python3 REQUIRED)
    set(PHOTOND_PYTHON ${PHOTOND_PYTHON3})
  endif()
endif()

set(PHOTOND_TEST_ENVIRONMENT
  "PHOTOND_BIN=${PROJECT_BINARY_DIR}/bin"
  "PHOTOND_SOURCE=${PROJECT_SOURCE_DIR}"
  "PYTHONPATH=${PROJECT_SOURCE_DIR}/tests/lib"
  "PYTHONDONTWRITEBYTECODE=1"
  "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1"
  "UBSAN_OPTIONS=print_stacktrace=1"
  "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/tests/lib/tsan.supp")

function(photond_test name)
  cmake_parse_arguments(T "" "TIMEOUT" "SOURCES;LIBS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${T_SOURCES})
  target_link_libraries(${name} PRIVATE photond_flags ${T_LIBS} PkgConfig::CMOCKA Threads::Threads)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/lib)
  target_compile_definitions(${name} PRIVATE
    TEST_FIXTURES="${PROJECT_SOURCE_DIR}/tests/fixtures" TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} ${T_ARGS})
  photond_test_properties(${name} "${T_LABELS}" "${T_TIMEOUT}")
  if(T_LIBS MATCHES "photond_objects|photon-client|photon_send")
    set_tests_properties(${name} PROPERTIES RUN_SERIAL TRUE)
  endif()
endfunction()

function(photond_script_test name)
  cmake_parse_arguments(T "" "SCRIPT;TIMEOUT" "LABELS;ARGS" ${ARGN})
  get_filename_component(path ${T_SCRIPT} ABSOLUTE)
  if(path MATCHES "\\.py$")
    add_test(NAME ${name} COMMAND ${PHOTOND_PYTHON} ${path} ${T_ARGS})
  else()
    add_test(NAME ${name} COMMAND sh ${path} ${T_ARGS})
  endif()
  photond_test_properties(${name} "${T_LABELS}" "${T_TIMEOUT}")
endfunction()

function(photond_test_properties name labels timeout)
  if(NOT timeout)
    set(timeout 900)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} SKIP_RETURN_CODE 77
                       ENVIRONMENT "${PHOTOND_TEST_ENVIRONMENT}")
endfunction()

# photond_fuzz_target(NAME SOURCE f.c LIBS ... CORPUS dir...): with PHOTOND_FUZZ a libFuzzer program run for PHOTOND_FUZZ_SECONDS;
# else the same function under a plain driver that feeds it the corpus, so that the stored cases run in every build.
set(PHOTOND_FUZZ_SECONDS 20 CACHE STRING "Seconds each fuzz target runs under CTest")
function(photond_fuzz_target name)
  cmake_parse_arguments(F "" "SOURCE;MAX_LEN" "LIBS;CORPUS" ${ARGN})
  if(NOT F_MAX_LEN)
    set(F_MAX_LEN 65536)
  endif()
  if(PHOTOND_FUZZ)
    add_executable(${name} ${F_SOURCE})
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    set(work ${PROJECT_BINARY_DIR}/fuzz/${name})
    file(MAKE_DIRECTORY ${work})
    add_test(NAME ${name} COMMAND ${name} -max_total_time=${PHOTOND_FUZZ_SECONDS} -max_len=${F_MAX_LEN} -timeout=20
             -rss_limit_mb=1024 -artifact_prefix=${work}/ ${work} ${F_CORPUS})
  else()
    add_executable(${name} ${F_SOURCE} ${PROJECT_SOURCE_DIR}/tests/lib/fuzz_driver.c)
    add_test(NAME ${name} COMMAND ${name} ${F_CORPUS})
  endif()
  target_link_libraries(${name} PRIVATE photond_flags ${F_LIBS} Threads::Threads)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests/lib)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  photond_test_properties(${name} "fuzz" 300)
endfunction()
