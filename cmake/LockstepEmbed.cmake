# lockstep_embed_text(<target> <file> <variable>): makes <file> available to <target> as
# `inline constexpr char <variable>[]` in the header "<variable>.embed.h". The file stays an
# ordinary source that editors and compilers read.
function(lockstep_embed_text target file variable)
  get_filename_component(input "${file}" ABSOLUTE)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/embed/${variable}.embed.h")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" -DINPUT=${input} -DOUTPUT=${output} -DVARIABLE=${variable}
      -P "${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake"
    DEPENDS "${input}" "${PROJECT_SOURCE_DIR}/cmake/EmbedText.cmake"
    VERBATIM)
  target_sources(${target} PRIVATE "${output}")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/embed")
endfunction()
