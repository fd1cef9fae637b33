# photond_protobuf_c(TARGET FILE.proto): an object library TARGET of protoc-c's output, its header on the include path.
# Generated code is held to no warnings of ours.
if(PHOTOND_WITH_D7)
  pkg_check_modules(PROTOBUF_C REQUIRED IMPORTED_TARGET libprotobuf-c)
  find_program(PROTOC_C NAMES protoc-c REQUIRED)
endif()

function(photond_protobuf_c target file)
  get_filename_component(stem ${file} NAME_WE)
  get_filename_component(path ${file} ABSOLUTE)
  get_filename_component(folder ${path} DIRECTORY)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/generated)
  file(MAKE_DIRECTORY ${out})
  add_custom_command(
    OUTPUT ${out}/${stem}.pb-c.c ${out}/${stem}.pb-c.h
    COMMAND ${PROTOC_C} --proto_path=${folder} --c_out=${out} ${path}
    DEPENDS ${path}
    VERBATIM)
  add_library(${target} OBJECT ${out}/${stem}.pb-c.c ${out}/${stem}.pb-c.h)
  target_compile_options(${target} PRIVATE -w)
  target_include_directories(${target} SYSTEM PUBLIC ${out})
  target_link_libraries(${target} PUBLIC PkgConfig::PROTOBUF_C)
endfunction()
