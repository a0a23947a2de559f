import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.anserini.analysis.DefaultEnglishAnalyzer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.analysis.tokenattributes.CharTermAttribute;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.FieldType;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexOptions;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LogByteSizeMergePolicy;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.MMapDirectory;

/**
 * Lucene's side of queries.py.
 *
 * <pre>
 * build TERMS.txt DIR          one document a line: terms with blanks between
 * serve DIR QUERIES.jsonl      answers orders, a line of JSON each, with a line that begins with "="
 * </pre>
 */
public class QueryServer {
  static final int K = 10;
  static final Analyzer ENGLISH = DefaultEnglishAnalyzer.newDefaultInstance();

  public static void main(String[] args) throws Exception {
    if (args[0].equals("build")) build(Path.of(args[1]), Path.of(args[2]));
    else serve(Path.of(args[1]), Path.of(args[2]));
  }

  static void build(Path terms, Path folder) throws Exception {
    FieldType type = new FieldType();
    type.setIndexOptions(IndexOptions.DOCS_AND_FREQS_AND_POSITIONS);
    type.setTokenized(true);
    type.freeze();
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer(32_000));
    config.setSimilarity(new BM25Similarity(0.9f, 0.4f)).setRAMBufferSizeMB(256).setUseCompoundFile(false);
    config.setMergePolicy(new LogByteSizeMergePolicy()).setMergeScheduler(new SerialMergeScheduler());
    try (MMapDirectory directory = new MMapDirectory(folder);
        IndexWriter writer = new IndexWriter(directory, config);
        BufferedReader lines = Files.newBufferedReader(terms)) {
      for (String line; (line = lines.readLine()) != null; ) {
        Document document = new Document();
        document.add(new Field("text", line, type));
        writer.addDocument(document);
      }
      writer.forceMerge(1);
      writer.commit();
    }
    say("{}");
  }

  /** The query of a text: its terms, each as often as it occurs. */
  static Query query(String text) throws Exception {
    BooleanQuery.Builder builder = new BooleanQuery.Builder();
    try (TokenStream tokens = ENGLISH.tokenStream("text", text)) {
      CharTermAttribute term = tokens.addAttribute(CharTermAttribute.class);
      for (tokens.reset(); tokens.incrementToken(); ) {
        builder.add(new TermQuery(new Term("text", term.toString())), Occur.SHOULD);
      }
      tokens.end();
    }
    return builder.build();
  }

  static Query query(JsonNode given) {
    String kind = given.get("kind").asText();
    List<Term> terms = new ArrayList<>();
    for (JsonNode term : given.get("terms")) terms.add(new Term("text", term.asText()));
    if (kind.startsWith("phrase")) return new PhraseQuery.Builder() {{ terms.forEach(this::add); }}.build();
    Occur occur = kind.startsWith("and") ? Occur.MUST : Occur.SHOULD;
    BooleanQuery.Builder builder = new BooleanQuery.Builder();
    for (Term term : terms) builder.add(new TermQuery(term), occur);
    return builder.build();
  }

  static void serve(Path folder, Path file) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    List<Object> queries = new ArrayList<>(); // a query, or a text that is analysed while the clock runs
    for (String line : Files.readAllLines(file)) {
      JsonNode given = mapper.readTree(line);
      queries.add(given.has("text") ? given.get("text").asText() : query(given));
    }
    DirectoryReader reader = DirectoryReader.open(new MMapDirectory(folder));
    IndexSearcher searcher = new IndexSearcher(reader);
    searcher.setSimilarity(new BM25Similarity(0.9f, 0.4f));
    searcher.setQueryCache(null);
    say("{\"version\": \"" + org.apache.lucene.util.Version.LATEST + "\"}");
    BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line; (line = orders.readLine()) != null; ) {
      JsonNode order = mapper.readTree(line);
      String way = order.get("way").asText();
      int first = order.get("first").asInt(), last = order.get("last").asInt();
      long sum = 0, before = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      StringBuilder found = new StringBuilder();
      for (int i = first; i < last; i++) {
        Query query = queries.get(i) instanceof String text ? query(text) : (Query) queries.get(i);
        switch (way) {
          case "top" -> sum += searcher.search(query, new TopScoreDocCollectorManager(K, K)).scoreDocs.length;
          case "count" -> sum += searcher.count(query);
          case "both" -> sum += searcher.search(query, new TopScoreDocCollectorManager(K, Integer.MAX_VALUE)).totalHits.value();
          default -> {
            TopDocs top = searcher.search(query, new TopScoreDocCollectorManager(K, Integer.MAX_VALUE));
            found.append(i == first ? "" : ", ").append("[").append(top.totalHits.value()).append(", [");
            for (int j = 0; j < top.scoreDocs.length; j++) {
              ScoreDoc hit = top.scoreDocs[j];
              found.append(j == 0 ? "" : ", ").append("[").append(hit.doc).append(", ").append(hit.score).append("]");
            }
            found.append("]]");
          }
        }
      }
      double seconds = (ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - before) / 1e9;
      say(way.equals("hits") ? "[" + found + "]" : "{\"seconds\": " + seconds + ", \"sum\": " + sum + "}");
    }
  }

  static void say(String text) {
    System.out.println("=" + text);
    System.out.flush();
  }
}
