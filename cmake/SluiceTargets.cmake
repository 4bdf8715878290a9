# How every target of the project is made: sluice_library, sluice_test, sluice_fuzzer.

# Flags shared by all. Contraction is off because the order and rounding of every
# float operation on the way to logits is fixed by hand (docs/arithmetic.md).
add_library(sluice_flags INTERFACE)
target_compile_features(sluice_flags INTERFACE cxx_std_20)
target_compile_options(sluice_flags INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers
  -ffp-contract=off -fno-math-errno -fvisibility-inlines-hidden
  $<$<BOOL:${SLUICE_WERROR}>:-Werror>)
target_include_directories(sluice_flags INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
target_compile_definitions(sluice_flags INTERFACE SLUICE_VERSION="${PROJECT_VERSION}")
if(SLUICE_SANITIZE)
  target_compile_options(sluice_flags INTERFACE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>  # wrong beside sanitizers
    -fsanitize=${SLUICE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g)
  target_link_options(sluice_flags INTERFACE -fsanitize=${SLUICE_SANITIZE})
  target_compile_definitions(sluice_flags INTERFACE SLUICE_SANITIZED)
endif()
if(SLUICE_FUZZ)
  target_compile_options(sluice_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# sluice_library(folder SOURCES a.cc … [DEPS folder …] [LIBS external …])
# Makes the static library sluice_<folder> from src/<folder>.
function(sluice_library folder)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  if(ARG_SOURCES)
    add_library(sluice_${folder} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
  else()
    add_library(sluice_${folder} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(sluice_${folder} ${scope} sluice_flags)
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(sluice_${folder} ${scope} sluice_${dep})
  endforeach()
  target_link_libraries(sluice_${folder} ${scope} ${ARG_LIBS})
endfunction()

# sluice_test(name SOURCES a_test.cc … DEPS folder … [LIBS …])
# Makes one GoogleTest binary, each of its tests a ctest of its own. Tests find the
# source tree at SLUICE_SOURCE_DIR and the reference vectors at SLUICE_REFERENCE_DIR
# (a test that needs those skips with a reason where they are absent). SLUICE_SANITIZED is defined in builds with
# sanitizers, which take memory and signals of their own.
function(sluice_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${name} PRIVATE sluice_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE sluice_flags ${ARG_LIBS} GTest::gmock_main)
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-O1>)  # a third less time to build; tests need no speed
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name} PRIVATE
    SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    SLUICE_REFERENCE_DIR="${PROJECT_SOURCE_DIR}/../shared/data")
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300)
endfunction()

# sluice_fuzzer(name SOURCES … DEPS …): a libFuzzer binary.
function(sluice_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  foreach(dep IN LISTS ARG_DEPS)
    target_link_libraries(${name} PRIVATE sluice_${dep})
  endforeach()
  target_link_libraries(${name} PRIVATE sluice_flags)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()
