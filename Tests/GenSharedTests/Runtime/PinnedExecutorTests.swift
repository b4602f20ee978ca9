import Glibc
import GenTestSupport
import Synchronization
import Testing

@testable import GenShared

@Suite("Pinned executor", .timeLimit(.minutes(1)))
struct PinnedExecutorTests {
    /// An actor whose thread also looks after a mailbox, as the connections' do.
    private actor Station: PollSource {
        private nonisolated let executor: PinnedExecutor
        private nonisolated let mailbox = Mailbox<Int>()
        private nonisolated let taken: Journal<Int>
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        private var order: [Int] = []

        init(name: String = "station", taken: Journal<Int> = Journal()) {
            executor = PinnedExecutor(name: name)
            self.taken = taken
            executor.poll(self)
        }

        nonisolated func post(_ number: Int) {
            guard mailbox.post(number) else { return }
            executor.wake()
        }

        nonisolated var hasWork: Bool { !mailbox.isEmpty }
        nonisolated func service() {
            // Enters the actor without a hop, or ends the test.
            assumeIsolated { station in
                for number in mailbox.takeAll() {
                    station.order.append(number)
                    taken.append(number)
                }
            }
        }
        nonisolated func wait(wake: Int32) {
            pollDescriptor(-1, events: 0, wake: wake, timeoutMilliseconds: -1)
        }

        func thread() -> UInt { UInt(pthread_self()) }
        func add(_ number: Int) { order.append(number) }
        var numbers: [Int] { order }

        /// Tells the journal when this thread ends.
        func tellEnd(_ ended: Journal<String>) {
            var key = pthread_key_t()
            pthread_key_create(&key) { context in
                guard let context else { return }
                Unmanaged<Journal<String>>.fromOpaque(context).takeRetainedValue().append("ended")
            }
            pthread_setspecific(key, Unmanaged.passRetained(ended).toOpaque())
        }
    }

    @Test("all jobs run on one thread, which is nobody else's")
    func oneThread() async {
        let (first, second) = (Station(), Station())
        let thread = await first.thread()
        for _ in 0..<100 { #expect(await first.thread() == thread) }
        #expect(await second.thread() != thread)
    }

    @Test("jobs run in the order in which they were handed in")
    func order() async {
        let station = Station()
        for number in 0..<1000 { await station.add(number) }
        #expect(await station.numbers == Array(0..<1000))
    }

    @Test("10,000 posts of many tasks all arrive, each task's in its order")
    func posts() async {
        let taken = Journal<Int>()
        let station = Station(taken: taken)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<20 {
                group.addTask { for number in 0..<500 { station.post(task * 500 + number) } }
            }
        }
        let all = await taken.wait(for: 10_000)
        #expect(all.sorted() == Array(0..<10_000))
        for task in 0..<20 {
            let own = all.filter { $0 / 500 == task }
            #expect(own == own.sorted())
        }
    }

    @Test("a post to a sleeping thread is seen, again and again")
    func wakes() async {
        let taken = Journal<Int>()
        let station = Station(taken: taken)
        for number in 1...500 {
            station.post(number)
            #expect(await taken.wait(for: number).last == number)
        }
    }

    @Test("a thread ends after its actor is gone, with its last job done")
    func ends() async {
        let ended = Journal<String>()
        do {
            let station = Station()
            await station.tellEnd(ended)
        }
        #expect(await ended.wait(for: 1) == ["ended"])
    }

    @Test("elsewhere is not inside")
    func isolation() async {
        let executor = PinnedExecutor(name: "outside")
        #expect(executor.isIsolatingCurrentContext() == false)
    }
}
