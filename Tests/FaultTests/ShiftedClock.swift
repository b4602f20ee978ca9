import Foundation
import GenTestSupport

/// Another time of day for a program under test, and only that.
///
/// Not libfaketime: it shifts timers that count from the start of the machine, too, and Dispatch then spins on timers
/// that are always due.
struct ShiftedClock {
    private let library: String

    private static let source = """
        #define _GNU_SOURCE
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>
        static long shift(void) { const char *text = getenv("GEN_TEST_CLOCK_SHIFT"); return text ? atol(text) : 0; }
        int clock_gettime(clockid_t clock, struct timespec *result) {
            int status = syscall(SYS_clock_gettime, clock, result);
            if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) result->tv_sec += shift();
            return status;
        }
        int gettimeofday(struct timeval *result, void *zone) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            result->tv_sec = now.tv_sec;
            result->tv_usec = now.tv_nsec / 1000;
            return 0;
        }
        time_t time(time_t *result) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """

    /// Compiles it with the toolchain's own compiler.
    static func build() async throws -> ShiftedClock {
        let stem = FileManager.default.temporaryDirectory.appending(path: "gen-clock-\(UUID().uuidString)").path
        defer { unlink("\(stem).c") }
        try Data(source.utf8).write(to: URL(filePath: "\(stem).c"))
        let built = try await run(
            "/usr/bin/env", ["clang", "-shared", "-fPIC", "-O1", "-o", "\(stem).so", "\(stem).c"],
            environment: ProcessInfo.processInfo.environment)
        guard built.status == 0 else { throw FaultError("clang: \(built.errors.suffix(600))") }
        return ShiftedClock(library: "\(stem).so")
    }

    /// For a program whose clock shows another hour.
    func environment(hours: Int) -> [String: String] {
        ["LD_PRELOAD": library, "GEN_TEST_CLOCK_SHIFT": "\(hours * 3600)"]
    }
}
