// ConjugateGradient: a solve of A x = b as one grid task, which stops by itself. A header for the programs that solve.
//
// Of the ways to order the sums of the method of Hestenes and Stiefel (1952), that of Ghysels and Vanroose, "Hiding global
// synchronization latency in the preconditioned Conjugate Gradient algorithm" (Parallel Computing, 2014), needs one meeting of
// all workers an iteration. It keeps w = A r and z = A A p by recurrences, so the product of an iteration, A w, needs nothing
// that the same iteration computes, and an iteration is one pass over the rows. The usual way meets three times, or twice if
// products gather both r and p and compute the new p themselves. That of Chronopoulos and Gear (1989) has all sums in one
// meeting but needs another, as its product is that of the new r.
//
// The price is rounding: recurrences drift away from what they stand for. So every kRefresh iterations, and before it stops,
// the solver computes r, s, w and z anew from x and p, and goes on with the same p. What ends a solve is the true residual.
// Near the last digits of double it takes more iterations than the usual way: 271 for 186 to 1e-11, for a random graph of 5,000
// vertices with 1e-4 on the diagonal.
#pragma once

#include <flywheel/task.cuh>

#include "apps/sparse/csr.hpp"
#include "apps/sparse/row_products.hpp"

namespace sparse {

/// What a solve came to.
struct Solved {
  double residual;           // |b - A x| / |b|; 0 if b is 0
  std::uint32_t iterations;  // products with A that moved x
  std::uint32_t refreshes;   // times that all was computed anew, the first and the last included
  std::uint32_t meetings;    // of all workers
  std::uint32_t converged;   // 0: the most iterations were not enough
};

/// Two sums over all rows.
struct Sums {
  double first, second;
  FLYWHEEL_TASK friend Sums operator+(Sums a, Sums b) { return {a.first + b.first, a.second + b.second}; }
};

struct ConjugateGradient {
  /// The code of block.fail() where p . A p is no positive number: A is not positive definite, A or b holds what is no number,
  /// or the residual asked for is less than double can give.
  static constexpr std::uint32_t kNotPositive = 1;
  /// Iterations between two refreshes, of which each has four products. With 200, the iterations to 1e-8, 1e-10 and 1e-12 on
  /// grids of 128 and 256 squared are those of the usual way. Without, a grid of 512 squared took 4,702 to 1e-12, for 1,945.
  static constexpr std::uint32_t kRefresh = 200;
  static constexpr bool kCompiled = false;  // a grid task is in no compiled graph

  Csr a;
  const double* b;
  double* x;       // what it finds; it begins with zeros
  double* memory;  // memory_of() doubles
  Solved* solved;
  double bound;                 // of |b - A x| / |b|
  std::uint32_t most;           // iterations
  std::uint32_t scratch_bytes;  // scratch memory to use, a multiple of 16: what a worker has of vectors and matrix, as it fits

  static std::size_t memory_of(std::uint32_t rows, std::uint32_t workers) {
    return std::size_t{7} * rows + std::size_t{4} * workers;
  }
  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const;
  template <class F>
  void buffers(F&& f) const {
    f("offsets", a.offsets), f("columns", a.columns), f("values", a.values);
    f("b", b), f("x", x), f("memory", memory), f("solved", solved);
  }
};

/// A worker's part in a solve, and what all workers know of it: each adds the same numbers up in the same order, so all decide
/// the same, and a solve that is repeated gives the same bits.
template <class Block>
class CgWorker {
 public:
  FLYWHEEL_TASK CgWorker(Block& block, const ConjugateGradient& task)
      : block_(block),
        task_(task),
        all_{task.memory, task.a.rows, block.workers()},
        near_(block, task.scratch_bytes),
        own_(block, task.a) {
    const std::uint32_t first = own_.first(), count = own_.count();
    z_ = near_.place(all_.vector(3) + first, count);
    s_ = near_.place(all_.vector(4) + first, count);
    p_ = near_.place(all_.vector(5) + first, count);
    r_ = near_.place(all_.vector(6) + first, count);
    x_ = near_.place(task.x + first, count);
    own_.come_near(block, near_);
    block.for_each(static_cast<int>(count), [&](int i) { x_[i] = p_[i] = s_[i] = z_[i] = 0; });
  }

  /// r = b - A x, s = A p, w = A r and z = A s, with three meetings. False: the run ends.
  FLYWHEEL_TASK bool refresh() {
    const double kept = rr_;
    if (!publish() || !refresh_residual() || !refresh_products()) return false;
    ++refreshes_;
    turn_ = 0;
    is_lost_ = false;
    drifted_ = !(rr_ <= 4 * kept && kept <= 4 * rr_);
    return true;
  }

  /// One iteration, with one meeting. False: the run ends.
  FLYWHEEL_TASK bool iterate() {
    // After a drift p says nothing about the r that there is, and the method begins anew. Going on with p, it did not come to
    // an end for the random graph of 5,000 vertices.
    const bool goes_on = iterations_ && !(turn_ == 0 && drifted_);
    const double beta = goes_on ? rr_ / rr_before_ : 0;
    const double p_a_p = turn_ ? wr_ - beta * rr_ / alpha_ : wr_ + beta * (2 * rs_ + beta * ps_);
    if (!(p_a_p > 0)) {  // nor is what is no number
      is_lost_ = true;   // by rounding, perhaps: behind a refresh it is the curvature itself
      if (turn_ == 0) block_.fail(ConjugateGradient::kNotPositive);
      return turn_ != 0;  // all workers have the same number
    }
    alpha_ = rr_ / p_a_p;
    rr_before_ = rr_;
    const Sums sums = move(beta, all_.vector(turn_ % 2 ? 0 : 2), all_.vector(turn_ % 2 ? 2 : 0));
    ++turn_;
    ++iterations_;
    return add_up(sums, rr_, wr_);
  }

  FLYWHEEL_TASK bool is_small() const { return rr_ <= task_.bound * task_.bound * bb_ && rr_ < 1e300; }  // infinity is not
  FLYWHEEL_TASK bool is_at_limit() const { return iterations_ >= task_.most; }
  FLYWHEEL_TASK bool needs_refresh() const {
    return is_lost_ || turn_ >= ConjugateGradient::kRefresh || is_small() || is_at_limit();
  }

  FLYWHEEL_TASK void report() const {
    if (block_.worker() != 0 || !block_.leader()) return;
    const double residual = rr_ == 0 ? 0 : sqrt(rr_ / bb_);
    *task_.solved = {residual, iterations_, refreshes_, meetings_, is_small() ? 1u : 0u};
  }

 private:
  /// The task's memory. Vectors 0 to 2 are what products gather, so others read them. The rest has each worker's own rows of z,
  /// s, p and r, where those do not fit nearer. Behind them the sums of workers.
  struct Memory {
    double* at;
    std::uint32_t rows, workers;
    FLYWHEEL_TASK double* vector(std::uint32_t n) const { return at + std::size_t{n} * rows; }
    /// Two buffers in turn: a worker that is one meeting ahead does not overwrite what others still read.
    FLYWHEEL_TASK Sums* sums(std::uint32_t turn) const {
      return reinterpret_cast<Sums*>(vector(7)) + std::size_t{turn % 2} * workers;
    }
  };

  /// x and p, where products gather them.
  FLYWHEEL_TASK bool publish() {
    const std::uint32_t first = own_.first();
    double* const p = all_.vector(2);
    Sums sums{0, 0};
    block_.for_each(static_cast<int>(own_.count()), [&](int i) {
      task_.x[first + i] = x_[i];
      p[first + i] = p_[i];
      sums.first += task_.b[first + i] * task_.b[first + i];
    });
    return add_up(sums, bb_, sums.second);
  }
  /// r and s, there too.
  FLYWHEEL_TASK bool refresh_residual() {
    const std::uint32_t first = own_.first();
    double *const r = all_.vector(0), *const s = all_.vector(1);
    Sums sums{0, 0};
    own_.multiply(block_, task_.x, [&](std::uint32_t i, double ax) { r[first + i] = r_[i] = task_.b[first + i] - ax; });
    own_.multiply(block_, all_.vector(2), [&](std::uint32_t i, double ap) {
      s[first + i] = s_[i] = ap;
      sums = sums + Sums{r_[i] * ap, p_[i] * ap};
    });
    return add_up(sums, rs_, ps_);
  }
  /// z, and w in the place of p.
  FLYWHEEL_TASK bool refresh_products() {
    const std::uint32_t first = own_.first();
    double* const w = all_.vector(2);
    Sums sums{0, 0};
    own_.multiply(block_, all_.vector(1), [&](std::uint32_t i, double as) { z_[i] = as; });
    own_.multiply(block_, all_.vector(0), [&](std::uint32_t i, double ar) {
      w[first + i] = ar;
      sums = sums + Sums{r_[i] * r_[i], ar * r_[i]};
    });
    return add_up(sums, rr_, wr_);
  }

  /// The updates of all own rows. Products gather the w of the iteration before, while others write theirs into `next`.
  FLYWHEEL_TASK Sums move(double beta, const double* w, double* next) {
    const std::uint32_t first = own_.first();
    const double alpha = alpha_;
    Sums sums{0, 0};
    own_.multiply(block_, w, [&](std::uint32_t i, double aw) {
      const double w_before = w[first + i], r_before = r_[i];
      const double z = z_[i] = aw + beta * z_[i];
      const double s = s_[i] = w_before + beta * s_[i];
      const double p = p_[i] = r_before + beta * p_[i];
      x_[i] += alpha * p;
      const double r = r_[i] = r_before - alpha * s;
      const double w_now = next[first + i] = w_before - alpha * z;
      sums = sums + Sums{r * r, w_now * r};
    });
    return sums;
  }

  /// The sums of all threads of all workers. All workers meet; false: the run ends.
  FLYWHEEL_TASK bool add_up(const Sums& of_thread, double& first, double& second) {
    const auto add = [](Sums a, Sums b) { return a + b; };
    Sums* const of_workers = all_.sums(meetings_++);
    const Sums own = block_.reduce(of_thread, add);
    if (block_.leader()) of_workers[block_.worker()] = own;
    if (!block_.grid_sync()) return false;
    Sums all{0, 0};
    block_.for_each(static_cast<int>(block_.workers()), [&](int worker) { all = all + of_workers[worker]; });
    all = block_.reduce(all, add);
    first = all.first;
    second = all.second;
    return true;
  }

  Block& block_;
  const ConjugateGradient& task_;
  const Memory all_;
  NearMemory<Block> near_;
  RowProducts own_;
  double *z_, *s_, *p_, *r_, *x_;                                // of own rows, from the first on
  double rr_ = 0, rr_before_ = 0, wr_ = 0, bb_ = 0, alpha_ = 0;  // r . r, that of the iteration before, w . r, b . b
  double rs_ = 0, ps_ = 0;                                       // r . s and p . s, at a refresh
  std::uint32_t turn_ = 0;                                       // iterations since the last refresh
  std::uint32_t iterations_ = 0, refreshes_ = 0, meetings_ = 0;
  bool is_lost_ = false, drifted_ = false;
};

template <class Block>
FLYWHEEL_TASK void ConjugateGradient::operator()(Block& block) const {
  CgWorker<Block> mine(block, *this);
  for (;;) {
    if (!mine.refresh()) return;
    if (mine.is_small() || mine.is_at_limit()) break;
    do {
      if (!mine.iterate()) return;
    } while (!mine.needs_refresh());
  }
  mine.report();
}

}  // namespace sparse
