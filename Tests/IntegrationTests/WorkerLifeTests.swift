import Foundation
import GenShared
import GenTestSupport
import Testing

/// Lanes, drain, crash, memory: what a worker does beside running jobs.
@Suite("Worker", .timeLimit(.minutes(4)))
struct WorkerLifeTests {
    @Test("SIGTERM lets a running job finish, hands back what takes too long, and exits 0")
    func drain() async throws {
        let pool = TestEnvironment.uniqueName("t")
        let first = try await WorkerProgram.start(
            pool: pool, backend: #"type: "echo", delay: "20ms", chunk_size: 1"#, more: #"drain: "4s","#)
        let short = try await started("short one", pool)
        let long = try await started(String(repeating: "long ", count: 200), pool)
        #expect(try await first.stop() == 0)
        #expect(try await dispatcher("status", short).status == 0)
        #expect(try await dispatcher("status", long).status == 9)
        let second = try await WorkerProgram.start(pool: pool)
        let shown = try await dispatcher("watch", long, "--json")
        #expect(shown.status == 0)
        #expect(shown.output.contains(#""reason":"shutdown""#) && shown.output.contains(#""restarted":true"#))
        let record = try await record(long)
        #expect(record.failures == 0 && record.attempt == 2)
        #expect(try await second.stop() == 0)
    }

    @Test("a worker that is killed loses nothing: its job runs again elsewhere when the lease is over")
    func killed() async throws {
        let pool = TestEnvironment.uniqueName("t")
        let first = try await WorkerProgram.start(pool: pool, backend: #"type: "echo", delay: "60s""#)
        let id = try await started("survivor", pool)
        first.program.signal(SIGKILL)
        let second = try await WorkerProgram.start(pool: pool)
        let shown = try await dispatcher("watch", id)
        #expect(shown.status == 0 && shown.output.contains("survivor"))
        #expect(try await record(id).attempt == 2)
        #expect(try await second.stop() == 0)
    }

    @Test("an interactive job pushes a batch job out of the only slot, at no cost to it")
    func preemption() async throws {
        try await withWorker(slots: 1, backend: #"type: "echo", delay: "10ms", chunk_size: 1"#) { worker in
            let batch = try await started(String(repeating: "patient ", count: 150), worker.pool, lane: "batch")
            let shown = try await dispatcher("submit", "reply", "urgent", "--wait", "--pool", worker.pool)
            #expect(shown.status == 0)
            let events = try await dispatcher("watch", batch, "--json")
            #expect(events.status == 0 && events.output.contains(#""reason":"preempted""#))
            #expect(try await record(batch).failures == 0)
        }
    }

    @Test("after 1,000 jobs a worker holds less than 30 MB, and idle it uses less than 1 % of a core")
    func memoryAndIdle() async throws {
        try await withWorker(slots: 64, backend: #"type: "echo", chunk_size: 8"#) { worker in
            let client = try TestEnvironment.client()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<1000 {
                    group.addTask {
                        var job = Job(
                            id: JobID(atMilliseconds: Timestamp.now.milliseconds), kind: .reply,
                            input: JobInput(text: "job \(number) of a thousand, with a few words to say"))
                        job.pool = worker.pool
                        try await client.submit(job, deadline: .seconds(60))
                        for try await item in client.watch(job.id) {
                            if case .event(let event) = item, event.isTerminal {
                                #expect(event.content.terminalState == .completed)
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            await client.close()
            let resident = try residentKilobytes(worker.program.processID)
            print("figure: worker resident after 1,000 jobs \(resident) kB")
            #expect(resident < 30_000)
            let before = try processorTicks(worker.program.processID)
            // Not to synchronise: the idle time is what is measured.
            try await Task.sleep(for: .seconds(5))
            let ticks = try processorTicks(worker.program.processID) - before
            print("figure: worker idle \(ticks) ticks of 10 ms in 5 s")
            #expect(ticks < 5)
        }
    }

    @Test("a worker that cannot reach RabbitMQ at first serves as soon as it can, and shows itself while it lives")
    func presence() async throws {
        try await withWorker { worker in
            let client = try TestEnvironment.client()
            #expect(try await client.livePools().contains(worker.pool))
            await client.close()
        }
        let doctor = try await dispatcher("doctor")
        #expect(doctor.output.contains("RabbitMQ") && doctor.output.contains("eviction policy noeviction"))
    }

    /// Submits a job and returns when a worker has begun it.
    private func started(_ text: String, _ pool: String, lane: String = "interactive") async throws -> String {
        let submitted = try await dispatcher(
            "submit", "reply", text, "--pool", pool, "--lane", lane, "--option", "max_tokens=4000")
        try #require(submitted.status == 0)
        let id = String(submitted.output.dropLast())
        let client = try TestEnvironment.client()
        for try await item in client.watch(try #require(JobID(id))) {
            if case .event(let event) = item, case .started = event.content { break }
        }
        await client.close()
        return id
    }

    private func record(_ id: String) async throws -> JobRecord {
        let client = try TestEnvironment.client()
        let record = try await client.record(try #require(JobID(id)))
        await client.close()
        return try #require(record)
    }

    private func residentKilobytes(_ process: Int32) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
        return try #require(Int(line.split(whereSeparator: \.isWhitespace)[1]))
    }

    private func processorTicks(_ process: Int32) throws -> Int {
        let stat = try String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)
        let fields = try #require(stat.split(separator: ")").last).split(separator: " ")
        return (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
    }
}
