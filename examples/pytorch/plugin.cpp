// SPDX-License-Identifier: MIT
// A plug-in for torch.cuda.memory.CUDAPluggableAllocator: each tensor is a hipMallocAsync on its stream.
// It uses HIP's public calls only, so that it works with and without somashim. README.md has the
// lines of Python.
#include <hip/hip_runtime_api.h>
#include <sys/types.h>

#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace {

std::mutex mutex;
// Streams that a block was used on beside the one that it was allocated on (record_stream).
std::unordered_map<void *, std::vector<hipStream_t>> used_on;
// A stream per device that waits for such uses, so that the stream of the allocation need not.
std::vector<hipStream_t> joining;

// Makes a device current, and the one before again at the end.
class current_device {
public:
	explicit current_device(int device)
	{
		(void)hipGetDevice(&before);
		changed = before != device && hipSetDevice(device) == hipSuccess;
	}
	~current_device()
	{
		if (changed)
			(void)hipSetDevice(before);
	}

private:
	int before = 0;
	bool changed;
};

std::vector<hipStream_t> take_uses(void *block)
{
	std::lock_guard<std::mutex> lock(mutex);
	auto found = used_on.find(block);

	if (found == used_on.end())
		return {};
	std::vector<hipStream_t> streams = std::move(found->second);
	used_on.erase(found);
	return streams;
}

hipStream_t joining_stream(int device)
{
	std::lock_guard<std::mutex> lock(mutex);

	if (joining.size() <= static_cast<size_t>(device))
		joining.resize(device + 1);
	if (!joining[device])
		(void)hipStreamCreateWithFlags(&joining[device], hipStreamNonBlocking);
	return joining[device];
}

// Work that is enqueued on `stream` from now on is ordered after all that `other` has now.
void wait_for(hipStream_t stream, hipStream_t other)
{
	hipEvent_t event;

	if (hipEventCreateWithFlags(&event, hipEventDisableTiming) != hipSuccess) {
		(void)hipStreamSynchronize(other);
		return;
	}
	if (hipEventRecord(event, other) != hipSuccess ||
	    hipStreamWaitEvent(stream, event, 0) != hipSuccess)
		(void)hipStreamSynchronize(other);
	(void)hipEventDestroy(event);
}

} // namespace

extern "C" {

// PyTorch takes a null pointer for a tensor, so a failure has to be an exception.
void *torch_malloc(ssize_t size, int device, hipStream_t stream)
{
	current_device current(device);
	void *block = nullptr;

	if (size <= 0)
		return nullptr;
	if (hipMallocAsync(&block, size, stream) != hipSuccess) {
		(void)hipGetLastError();
		throw std::bad_alloc();
	}
	return block;
}

void torch_free(void *block, ssize_t, int device, hipStream_t stream)
{
	if (!block)
		return;
	current_device current(device);
	std::vector<hipStream_t> streams = take_uses(block);
	if (!streams.empty()) {
		hipStream_t joined = joining_stream(device);

		wait_for(joined, stream);
		for (hipStream_t other : streams)
			wait_for(joined, other);
		stream = joined;
	}
	(void)hipFreeAsync(block, stream);
}

// tensor.record_stream(stream). Without it a tensor is reused while the other stream still reads it.
void torch_record_stream(void *block, hipStream_t stream)
{
	std::lock_guard<std::mutex> lock(mutex);
	std::vector<hipStream_t> &streams = used_on[block];

	for (hipStream_t seen : streams)
		if (seen == stream)
			return;
	streams.push_back(stream);
}

// torch.cuda.empty_cache()
void torch_reset()
{
	int count = 0;

	(void)hipGetDeviceCount(&count);
	for (int device = 0; device < count; device++) {
		hipMemPool_t pool;
		current_device current(device);

		if (hipDeviceGetDefaultMemPool(&pool, device) == hipSuccess &&
		    hipDeviceSynchronize() == hipSuccess)
			(void)hipMemPoolTrimTo(pool, 0);
	}
}

} // extern "C"
