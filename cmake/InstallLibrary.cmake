# photond_library(NAME d7 HEADERS_DIR include HEADERS d7/d7.h SOURCES ... [EXTRA_OBJECTS $<TARGET_OBJECTS:x>...]
#                 [PRIVATE_LIBS ...] [PC_REQUIRES ...] [PC_LIBS ...])
#
# Makes from one list of sources: an object library NAME_objects, the shared library NAME (alias NAME::NAME), the static
# library NAME_static, and (with tests) nothing more: tests link NAME_static and add the private include folder.
# Installs both, the public headers, a pkg-config file and a CMake package.
function(photond_library)
  cmake_parse_arguments(L "" "NAME;HEADERS_DIR;DESCRIPTION" "HEADERS;SOURCES;EXTRA_OBJECTS;PRIVATE_LIBS;PC_REQUIRES;PC_LIBS" ${ARGN})
  set(n ${L_NAME})
  add_library(${n}_objects OBJECT ${L_SOURCES})
  target_include_directories(${n}_objects PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/${L_HEADERS_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(${n}_objects PRIVATE photond_flags common_base ${L_PRIVATE_LIBS})

  add_library(${n} SHARED $<TARGET_OBJECTS:${n}_objects> $<TARGET_OBJECTS:common_base> ${L_EXTRA_OBJECTS})
  add_library(${n}_static STATIC $<TARGET_OBJECTS:${n}_objects> $<TARGET_OBJECTS:common_base> ${L_EXTRA_OBJECTS})
  set_target_properties(${n}_static PROPERTIES OUTPUT_NAME ${n})
  set_target_properties(${n} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINKER_LANGUAGE C)
  set_target_properties(${n}_static PROPERTIES LINKER_LANGUAGE C)
  foreach(t ${n} ${n}_static)
    target_include_directories(${t} PUBLIC
      $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/${L_HEADERS_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${t} PRIVATE ${L_PRIVATE_LIBS})
  endforeach()
  add_library(${n}::${n} ALIAS ${n})

  foreach(header ${L_HEADERS})
    get_filename_component(folder ${header} DIRECTORY)
    install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/${L_HEADERS_DIR}/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
  endforeach()
  install(TARGETS ${n} EXPORT ${n}-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS ${n}_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${n}-targets NAMESPACE ${n}:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${n})

  file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${n}-config.cmake.in
       "@PACKAGE_INIT@\ninclude(\"\${CMAKE_CURRENT_LIST_DIR}/${n}-targets.cmake\")\ncheck_required_components(${n})\n")
  configure_package_config_file(${CMAKE_CURRENT_BINARY_DIR}/${n}-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/${n}-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${n})
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/${n}-config-version.cmake COMPATIBILITY SameMajorVersion)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${n}-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/${n}-config-version.cmake
          DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/${n})

  list(JOIN L_PC_REQUIRES " " PC_REQUIRES_PRIVATE)
  list(JOIN L_PC_LIBS " " PC_LIBS_PRIVATE)
  set(PC_NAME ${n})
  # Relative, so that a package works wherever it is installed to.
  file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  set(PC_DESCRIPTION ${L_DESCRIPTION})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${n}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${n}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
