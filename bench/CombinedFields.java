import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.lucene.analysis.core.WhitespaceAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.search.CollectionStatistics;
import org.apache.lucene.search.CombinedFieldQuery;
import org.apache.lucene.search.Explanation;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermStatistics;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.search.similarities.BM25Similarity;
import org.apache.lucene.store.ByteBuffersDirectory;

/**
 * Lucene's side of fields.py: scores of CombinedFieldQuery.
 *
 * <pre>
 * CombinedFields GIVEN.json OUT.json     weights, docs by field, topics (terms by df), k1, b
 * </pre>
 *
 * OUT has for each topic the scores of its documents, first with Lucene's df of a term, the greatest of its fields, then with
 * the df of the fields together.
 */
public class CombinedFields {
  static class OwnDf extends BM25Similarity {
    long df;

    OwnDf(float k1, float b) {
      super(k1, b);
    }

    @Override
    public Explanation idfExplain(CollectionStatistics collection, TermStatistics term) {
      if (df == 0) return super.idfExplain(collection, term);
      return Explanation.match(idf(df, collection.docCount()), "idf");
    }
  }

  public static void main(String[] args) throws Exception {
    ObjectMapper mapper = new ObjectMapper();
    JsonNode given = mapper.readTree(Files.readAllBytes(Path.of(args[0])));
    JsonNode docs = given.get("docs");
    OwnDf similarity = new OwnDf((float) given.get("k1").asDouble(), (float) given.get("b").asDouble());
    ByteBuffersDirectory directory = new ByteBuffersDirectory();
    IndexWriterConfig config = new IndexWriterConfig(new WhitespaceAnalyzer(32_000)).setSimilarity(similarity);
    try (IndexWriter writer = new IndexWriter(directory, config)) {
      for (int i = 0; i < docs.get("title").size(); i++) {
        Document document = new Document();
        for (String field : new String[] {"title", "text"}) {
          document.add(new TextField(field, docs.get(field).get(i).asText(), Field.Store.NO));
        }
        writer.addDocument(document);
      }
      writer.forceMerge(1);
    }
    DirectoryReader reader = DirectoryReader.open(directory);
    IndexSearcher searcher = new IndexSearcher(reader);
    searcher.setSimilarity(similarity);
    Object[] out = new Object[2];
    for (int own = 0; own < 2; own++) {
      Object[] topics = new Object[given.get("topics").size()];
      for (int topic = 0; topic < topics.length; topic++) {
        Map<Integer, Double> scores = new TreeMap<>();
        for (Map.Entry<String, JsonNode> term : given.get("topics").get(topic).properties()) {
          similarity.df = own == 0 ? 0 : term.getValue().asLong();
          CombinedFieldQuery.Builder query = new CombinedFieldQuery.Builder(term.getKey());
          for (Map.Entry<String, JsonNode> weight : given.get("weights").properties()) {
            query.addField(weight.getKey(), (float) weight.getValue().asDouble());
          }
          int k = reader.maxDoc();
          for (ScoreDoc hit : searcher.search(query.build(), new TopScoreDocCollectorManager(k, k)).scoreDocs) {
            scores.merge(hit.doc, (double) hit.score, Double::sum);
          }
        }
        topics[topic] = scores;
      }
      out[own] = topics;
    }
    mapper.writeValue(Path.of(args[1]).toFile(), out);
  }
}
