// SPDX-License-Identifier: Apache-2.0
#include "src/record/private_work.h"

#include "src/record/local_recorder.h"

namespace lockstep {

PrivateWork::PrivateWork() { record::LocalRecorder::get().api().private_work(1); }
PrivateWork::~PrivateWork() { record::LocalRecorder::existing()->api().private_work(-1); }

}  // namespace lockstep
