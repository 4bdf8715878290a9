# Static aarch64 Linux binaries, cross-compiled, run under qemu-user. Third-party libraries come from a folder that
# tools/aarch64_sysroot.sh fills. Which processor qemu plays is chosen when a test runs, by qemu's own variable:
#   QEMU_CPU=cortex-a53 ctest --test-dir build/aarch64-static
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)

get_filename_component(SLUICE_AARCH64_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-sysroot ABSOLUTE)
if(NOT EXISTS ${SLUICE_AARCH64_SYSROOT}/.complete)
  message(FATAL_ERROR "No aarch64 libraries in ${SLUICE_AARCH64_SYSROOT}: run tools/aarch64_sysroot.sh first")
endif()
# Libraries, headers and package files come from there only; programs (python3, ccache) from this machine.
set(CMAKE_FIND_ROOT_PATH ${SLUICE_AARCH64_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SLUICE_AARCH64_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${SLUICE_AARCH64_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${SLUICE_AARCH64_SYSROOT}/usr/share/pkgconfig)
# Headers found by their plain name (a library without a package file).
set(CMAKE_CXX_FLAGS_INIT "-isystem ${SLUICE_AARCH64_SYSROOT}/usr/include -isystem ${SLUICE_AARCH64_SYSROOT}/usr/include/aarch64-linux-gnu")
