// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

/// \file
/// The folder that a recording shares with the programs it records.
namespace lockstep::record {

/// Its own descriptor of the folder's file "hub", locked as long as the recording lives.
struct RecordFolder {
  std::filesystem::path path;
  int hub = -1;
};

/// Makes one, in memory where the system has it, and removes what recordings that were killed left
/// there. \throws Error kInputOutput naming the folder and the reason.
RecordFolder make_record_folder();

}  // namespace lockstep::record
