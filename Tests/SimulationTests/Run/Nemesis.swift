import GenShared

/// Does harm at random moments for a while, and puts everything right at the end.
struct Nemesis {
    let world: World
    let until: Duration

    private var simulation: Simulation { world.simulation }

    func begin() {
        simulation.after(simulation.duration(50...4000)) { strike() }
    }

    private func strike() {
        guard simulation.elapsed < until else { return }
        harm(Int.random(in: 0..<10, using: &simulation.random))
        begin()
    }

    private func harm(_ kind: Int) {
        guard let worker = simulation.pick(world.workers) else { return }
        let process = worker.process
        switch kind {
        case 0, 1: world.kill(process)
        case 2: pause(process)
        case 3: world.broker.cutConnections(of: process)
        case 4:
            guard world.broker.isUp else { return }
            world.broker.setUp(false)
            simulation.after(simulation.duration(100...12_000)) { world.broker.setUp(true) }
        case 5:
            guard world.redis.isUp else { return }
            world.redis.setUp(false)
            simulation.after(simulation.duration(100...12_000)) { world.redis.setUp(true) }
        case 6: world.redis.cutConnections(of: process)
        case 7:
            if simulation.chance(0.5) {
                world.redis.cutOff(process)
                simulation.after(simulation.duration(100...12_000)) { world.redis.reconnect(process) }
            } else {
                world.broker.cutOff(process)
                simulation.after(simulation.duration(100...12_000)) { world.broker.reconnect(process) }
            }
        case 8:
            guard world.options.rollsBack, world.redis.isUp else { return }
            world.redis.rollBack(told: world.checker)
        default: world.retire(worker)
        }
    }

    /// SIGSTOP, and SIGCONT later; the broker gives a connection up whose heartbeats stay away.
    private func pause(_ process: SimulatedProcess) {
        guard !process.isStopped else { return }
        process.stop()
        let length = simulation.duration(100...30_000)
        if length > .seconds(20) {
            simulation.after(.seconds(20)) {
                if process.isStopped { world.broker.cutConnections(of: process) }
            }
        }
        simulation.after(length) { process.resume() }
    }
}
