// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/trace.h>

#include <string>

/// \file
/// Items of a trace as JSON text, keys in the order of docs/trace-format.md, no line feed.
namespace lockstep {

/// `in_graph`: a node of a definition, which carries no stream.
void encode_entry(std::string& out, const LaunchTraceEntry& entry, bool write_hash, bool in_graph);
void encode_stream(std::string& out, const StreamDefinition& stream);
void encode_graph(std::string& out, const GraphDefinition& graph, bool write_hashes);
/// Header line: what is known at the start. Devices and driver stand in a meta line.
void encode_header(std::string& out, const TraceInfo& info);
void encode_meta(std::string& out, const TraceInfo& info, bool with_unknown);
void encode_footer(std::string& out, const TraceFooter& footer);

}  // namespace lockstep
